package export

import (
	"cmp"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gonbatch/internal/embedded"
	"gonbatch/internal/gocell"
	"gonbatch/internal/rundir"
)

// embed copies the files that a program embeds from the notebook's folder to the program's. A
// pattern that matches no file is an error in its cell.
func (e *exporter) embed(cell rundir.Cell, program []byte) error {
	if !strings.Contains(string(program), embedded.Directive) {
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
			if cell.File == d.file {
				return cell.Errorf(lineWith(cell.Source, d.pattern, d.line), "%v", err)
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
		if strings.HasPrefix(strings.TrimSpace(lines[i-1]), embedded.Directive) && strings.Contains(lines[i-1], pattern) {
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
	vars, err := embedded.Variables(file, string(program))
	if err != nil {
		return nil, err
	}
	for _, v := range vars {
		at := fset.Position(v.Spec.Pos())
		for _, pattern := range v.Patterns {
			found = append(found, embedLine{pattern, at.Filename, at.Line})
		}
	}
	return found, nil
}

// embedPattern adds the files that a pattern matches.
func (e *exporter) embedPattern(cell rundir.Cell, pattern string) error {
	names, err := embedded.Files(e.dir, pattern)
	if missing := (*embedded.MissingError)(nil); errors.As(err, &missing) {
		return cmp.Or(e.writtenLater(missing.Pattern), err)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(e.dir, filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("%s %s: %w", embedded.Directive, pattern, err)
		}
		e.module.Files[cell.Name+"/"+name] = data
	}
	return nil
}

// writtenLater returns an error if a cell writes the file that a pattern names: programs are
// compiled before any cell runs.
func (e *exporter) writtenLater(pattern string) error {
	for _, cell := range e.cells {
		if !cell.IsCode() {
			continue
		}
		call := gocell.Parse(cell.Source).Program
		if call == nil || call.Name() != gocell.WriteFile || len(call.Args()) == 0 {
			continue
		}
		if name := call.Args()[len(call.Args())-1]; path.Clean(name) == pattern || name == filepath.Join(e.dir, pattern) {
			return fmt.Errorf("%s %s: cell %s writes this file, but the job's programs are compiled before it runs: run cell %s in the kernel first", embedded.Directive, pattern, cell.Label(), cell.Label())
		}
	}
	return nil
}
