package build

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/embedded"
	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
)

// embedFiles are the files, for programs and for tests, with the functions that return the embedded
// files of variables. Cells call them: see cell.EmbedPrefix.
var embedFiles = [...]string{"gonbatch__embed.go", "gonbatch__embed_test.go"}

// OverlayFile is the file in Options.Plans that tells the go command where embedded files are.
const OverlayFile = "overlay"

// embedVar is a variable of the program with embedded files.
type embedVar struct {
	name, goType string
	patterns     []string
	line, column int
	// files are paths relative to the notebook's folder.
	files []string
}

// embed writes the functions for the variables with embedded files, and tells the compiler where
// those files are. The messages are about patterns without files.
func (b *builder) embed(text []byte) (messages []byte, err error) {
	vars := embedVars(string(text))
	for i := range vars {
		messages = append(messages, b.findFiles(&vars[i])...)
	}
	if len(messages) > 0 {
		return append([]byte("# cell\n"), messages...), nil
	}
	source := ""
	if len(vars) > 0 {
		source = b.embedSource(vars, text)
	}
	b.embedded, err = b.digest(vars)
	return nil, errors.Join(err,
		b.writeOwn(embedFiles[0], source, source != "" && !b.isTest()),
		b.writeOwn(embedFiles[1], source, source != "" && b.isTest()),
		b.writeOverlay(vars))
}

// embedVars returns the variables of a program with embedded files.
func embedVars(text string) (vars []embedVar) {
	if !strings.Contains(text, cell.EmbedPrefix) {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil // The compiler will report it.
	}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			spec := spec.(*ast.ValueSpec)
			if patterns := embedPatterns(spec); patterns != nil {
				at := set.Position(spec.Pos())
				goType := text[set.Position(spec.Type.Pos()).Offset:set.Position(spec.Type.End()).Offset]
				vars = append(vars, embedVar{name: spec.Names[0].Name, goType: goType, patterns: patterns, line: at.Line, column: at.Column})
			}
		}
	}
	return vars
}

// embedPatterns returns the patterns in the value of a variable with embedded files; nil for other
// variables.
func embedPatterns(spec *ast.ValueSpec) (patterns []string) {
	if len(spec.Names) != 1 || len(spec.Values) != 1 || spec.Type == nil {
		return nil
	}
	call, ok := spec.Values[0].(*ast.CallExpr)
	if !ok {
		return nil
	}
	if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != cell.EmbedPrefix+spec.Names[0].Name {
		return nil
	}
	for _, arg := range call.Args {
		if literal, ok := arg.(*ast.BasicLit); ok {
			pattern, _ := strconv.Unquote(literal.Value) // The kernel has quoted it.
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// findFiles finds a variable's files. The messages look like the compiler's.
func (b *builder) findFiles(v *embedVar) (messages []byte) {
	for _, pattern := range v.patterns {
		names, err := embedded.Files(b.NotebookDir, pattern)
		if err != nil {
			messages = fmt.Appendf(messages, "./%s:%d:%d: %v\n", filepath.Base(b.mainFile()), v.line, v.column, err)
		}
		v.files = append(v.files, names...)
	}
	slices.Sort(v.files)
	v.files = slices.Compact(v.files)
	return messages
}

// embedSource returns the functions. Messages of the compiler about them name the variables' places
// in the program.
func (b *builder) embedSource(vars []embedVar, text []byte) string {
	var source strings.Builder
	fmt.Fprintf(&source, "package main\n\n%s\n", embedImports(text))
	for _, v := range vars {
		fmt.Fprintf(&source, "\n//line %s:%d:1\n%s", b.mainFile(), v.line-1, embedded.Directive)
		for _, name := range v.files {
			source.WriteString(" " + strconv.Quote(strings.ReplaceAll(name, "[", `\[`)))
		}
		fmt.Fprintf(&source, "\nvar gonbatch__embed__%s %s\n\nfunc %s%s(...string) %s { return gonbatch__embed__%s }\n",
			v.name, v.goType, cell.EmbedPrefix, v.name, v.goType, v.name)
	}
	return source.String()
}

// embedImports returns the program's imports of package embed, and one that makes the compiler
// accept //go:embed.
func embedImports(text []byte) string {
	lines := []string{`import _ "embed"`}
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	if err != nil {
		return lines[0]
	}
	for _, spec := range file.Imports {
		name := gocell.AssumedName("embed")
		if spec.Name != nil {
			name = spec.Name.Name
		}
		switch {
		case spec.Path.Value != `"embed"` || name == "_":
		case name == ".":
			lines = append(lines, `import . "embed"`, "var _ FS")
		default:
			lines = append([]string{fmt.Sprintf("import %s \"embed\"", name)}, append(lines, fmt.Sprintf("var _ %s.FS", name))...)
		}
	}
	return strings.Join(lines, "\n\n")
}

func (b *builder) overlay() string { return filepath.Join(b.Plans, OverlayFile) }

func (b *builder) writeOverlay(vars []embedVar) error {
	places := map[string]string{}
	for _, v := range vars {
		for _, name := range v.files {
			at, err := filepath.EvalSymlinks(filepath.Join(b.NotebookDir, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			places[filepath.Join(b.Dir, filepath.FromSlash(name))] = at
		}
	}
	if len(places) == 0 {
		return b.removeOverlay()
	}
	text, err := json.Marshal(map[string]any{"Replace": places})
	return errors.Join(err, os.MkdirAll(b.Plans, 0o755), os.WriteFile(b.overlay(), text, 0o600))
}

func (b *builder) removeOverlay() error {
	if err := os.Remove(b.overlay()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// overlayFlag returns the go command's flag for embedded files.
func (b *builder) overlayFlag() string {
	if !exists(b.overlay()) {
		return "-overlay="
	}
	return "-overlay=" + b.overlay()
}

// digest returns hashes of the contents of embedded files, by the names of the variables.
func (b *builder) digest(vars []embedVar) (map[string]string, error) {
	digests := map[string]string{}
	for _, v := range vars {
		sum := sha256.New()
		for _, name := range v.files {
			text, err := os.ReadFile(filepath.Join(b.NotebookDir, filepath.FromSlash(name)))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(text))
		}
		digests[v.name] = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	}
	return digests, nil
}
