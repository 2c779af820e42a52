package cell

import (
	"errors"
	"fmt"
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
	vars, err := embedded.Variables(file, text)
	if mistake := (*embedded.Mistake)(nil); errors.As(err, &mistake) {
		line, _ := p.file.Place(set.Position(mistake.Pos).Offset)
		return fmt.Errorf("line %d: %w", line, err)
	}
	for _, v := range slices.Backward(vars) { // The last first: an insertion moves what follows.
		if name := v.Spec.Names[0].Name; name != "_" {
			insert(p.lines, p.file, set.Position(v.Spec.End()).Offset, " = "+embedCall(name, v.Patterns))
		}
	}
	return nil
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
