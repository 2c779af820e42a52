package cell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/embedded"
)

// EmbedPrefix begins the name of the function that returns a variable's embedded files: the
// variable's name follows.
const EmbedPrefix = "gonbatch__embed_"

// embed gives each variable below a //go:embed line a call as its value, with the line's patterns
// as arguments: GoNB loses the comments of variables. The build of a program defines the functions.
func (p *preparer) embed() error {
	text := p.file.Text()
	if !strings.Contains(text, embedded.Directive) {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil // GoNB will report it.
	}
	for _, spec := range slices.Backward(variables(file)) { // The last first: an insertion moves what follows.
		patterns, err := embedded.Patterns(spec.Doc)
		if err != nil {
			line, _ := p.file.Place(set.Position(spec.Pos()).Offset)
			return fmt.Errorf("line %d: %w", line, err)
		}
		if len(patterns) > 0 && len(spec.Names) == 1 && spec.Names[0].Name != "_" && spec.Type != nil && len(spec.Values) == 0 {
			insert(p.lines, p.file, set.Position(spec.End()).Offset, " = "+embedCall(spec.Names[0].Name, patterns))
		}
	}
	return nil
}

// variables returns a file's variables. Those that are not in a group get the group's comment.
func variables(file *ast.File) (specs []*ast.ValueSpec) {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			spec := spec.(*ast.ValueSpec)
			if !group.Lparen.IsValid() {
				spec.Doc = group.Doc
			}
			specs = append(specs, spec)
		}
	}
	return specs
}

func embedCall(name string, patterns []string) string {
	quoted := make([]string, len(patterns))
	for i, pattern := range patterns {
		quoted[i] = strconv.Quote(pattern)
	}
	return EmbedPrefix + name + "(" + strings.Join(quoted, ", ") + ")"
}

// addedCall matches what embed inserts, in a line.
var addedCall = regexp.MustCompile(` = ` + EmbedPrefix + `[\pL\pN_]+\((?:"(?:[^"\\]|\\.)*"(?:, )?)+\)`)
