package export

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"gonbatch/internal/rundir"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// embedDirective begins the comment above a variable with embedded files.
const embedDirective = "//go:embed"

// embed copies the files that a program embeds from the notebook's folder to the program's. A
// pattern that matches no file is an error in its cell.
func (e *exporter) embed(cell rundir.Cell, program []byte) error {
	if !strings.Contains(string(program), embedDirective) {
		return nil
	}
	directives, err := embedDirectives(program)
	if err != nil {
		return fmt.Errorf("cell %s: %w", cell.Name, err)
	}
	for _, d := range directives {
		err := e.embedPattern(cell, d.pattern)
		if err == nil {
			continue
		}
		for _, cell := range e.cells {
			if cell.file == d.file {
				return cell.errorf(lineWith(cell.Source, d.pattern, d.line), "%v", err)
			}
		}
		return fmt.Errorf("cell %s: %w", cell.Name, err)
	}
	return nil
}

// lineWith returns the nearest line at or above n that has the directive with a pattern.
func lineWith(source, pattern string, n int) int {
	lines := strings.Split(source, "\n")
	for i := min(n, len(lines)); i >= 1; i-- {
		if strings.HasPrefix(strings.TrimSpace(lines[i-1]), embedDirective) && strings.Contains(lines[i-1], pattern) {
			return i
		}
	}
	return n
}

// embedLine is a pattern of a //go:embed line, with the position of the variable below it.
type embedLine struct {
	pattern, file string
	line          int
}

// embedDirectives finds the //go:embed lines of a program.
func embedDirectives(program []byte) (found []embedLine, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "main.go", program, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		variable, ok := d.(*ast.GenDecl)
		if !ok || variable.Doc == nil {
			continue
		}
		at := fset.Position(variable.Pos())
		for _, comment := range variable.Doc.List {
			directive, ok := ast.ParseDirective(token.NoPos, comment.Text)
			if !ok || directive.Tool+":"+directive.Name != "go:embed" {
				continue
			}
			args, err := directive.ParseArgs()
			if err != nil {
				return nil, err
			}
			for _, arg := range args {
				found = append(found, embedLine{arg.Arg, at.Filename, at.Line})
			}
		}
	}
	return found, nil
}

// embedPattern adds the files that a pattern matches, by go:embed's rules.
func (e *exporter) embedPattern(cell rundir.Cell, pattern string) error {
	glob, all := strings.CutPrefix(pattern, "all:")
	if !fs.ValidPath(glob) {
		return fmt.Errorf("//go:embed %s: give a path below the notebook's folder, without .. and not absolute", pattern)
	}
	tree := os.DirFS(e.dir)
	matches, err := fs.Glob(tree, glob)
	if err != nil {
		return fmt.Errorf("//go:embed %s: %w", pattern, err)
	}
	if len(matches) == 0 {
		return fmt.Errorf("//go:embed %s: there is no such file in the notebook's folder, %s", pattern, e.dir)
	}
	for _, match := range matches {
		err := fs.WalkDir(tree, match, func(name string, entry fs.DirEntry, err error) error {
			hidden := name != match && !all && strings.ContainsRune("._", rune(path.Base(name)[0]))
			switch {
			case err != nil:
				return err
			case hidden && entry.IsDir():
				return fs.SkipDir
			case hidden || entry.IsDir():
				return nil
			}
			return e.embedFile(cell, name)
		})
		if err != nil {
			return fmt.Errorf("//go:embed %s: %w", pattern, err)
		}
	}
	return nil
}

// embedFile adds one file.
func (e *exporter) embedFile(cell rundir.Cell, name string) error {
	data, err := os.ReadFile(filepath.Join(e.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	to := cell.Name + "/" + name
	if to == cell.Source() {
		return errors.New("the exported program itself has that name; give the file another one")
	}
	e.module.Files[to] = data
	return nil
}
