package export

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"gonbatch/internal/rundir"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// embedDirective begins the comment above a variable that holds files.
const embedDirective = "//go:embed"

// embed copies the files that a program embeds from the notebook's folder into the program's. A
// pattern that matches no file is a mistake in its cell.
func (e *exporter) embed(step rundir.Step, program []byte) error {
	if !strings.Contains(string(program), embedDirective) {
		return nil
	}
	for _, d := range embedDirectives(program) {
		for _, pattern := range d.patterns {
			err := e.embedPattern(step, pattern)
			if err == nil {
				continue
			}
			for _, cell := range e.cells {
				if cell.file == d.file {
					return cell.errorf(lineWith(cell.Source, pattern, d.line), "%v", err)
				}
			}
			return fmt.Errorf("cell %s: %w", step.Name, err)
		}
	}
	return nil
}

// lineWith is the line at or above n that has the directive with a pattern.
func lineWith(source, pattern string, n int) int {
	lines := strings.Split(source, "\n")
	for i := min(n, len(lines)); i >= 1; i-- {
		if strings.HasPrefix(strings.TrimSpace(lines[i-1]), embedDirective) && strings.Contains(lines[i-1], pattern) {
			return i
		}
	}
	return n
}

// embedLine is one //go:embed line and the cell's line that follows it.
type embedLine struct {
	patterns []string
	file     string
	line     int
}

// embedDirectives finds the //go:embed lines of a program.
func embedDirectives(program []byte) (found []embedLine) {
	fset := token.NewFileSet()
	file := fset.AddFile("main.go", -1, len(program))
	var s scanner.Scanner
	s.Init(file, program, nil, scanner.ScanComments)
	open := 0 // The directives before this one know their place.
	for {
		pos, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return found
		case tok != token.COMMENT:
			at := fset.Position(pos)
			for ; open < len(found); open++ {
				found[open].file, found[open].line = at.Filename, at.Line
			}
		case strings.HasPrefix(lit, embedDirective+" ") || strings.HasPrefix(lit, embedDirective+"\t"):
			found = append(found, embedLine{patterns: embedPatterns(lit[len(embedDirective):])})
		}
	}
}

// embedPatterns takes the arguments of //go:embed apart: words, or Go's own string literals.
func embedPatterns(args string) (patterns []string) {
	for {
		args = strings.TrimSpace(args)
		if args == "" {
			return patterns
		}
		if quoted, err := strconv.QuotedPrefix(args); err == nil {
			text, err := strconv.Unquote(quoted)
			if err != nil {
				return patterns
			}
			patterns, args = append(patterns, text), args[len(quoted):]
			continue
		}
		end := strings.IndexAny(args, " \t")
		if end < 0 {
			end = len(args)
		}
		patterns, args = append(patterns, args[:end]), args[end:]
	}
}

// embedPattern adds the files that a pattern matches, by go:embed's own rules.
func (e *exporter) embedPattern(step rundir.Step, pattern string) error {
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
			return e.embedFile(step, name)
		})
		if err != nil {
			return fmt.Errorf("//go:embed %s: %w", pattern, err)
		}
	}
	return nil
}

// embedFile adds one file.
func (e *exporter) embedFile(step rundir.Step, name string) error {
	data, err := os.ReadFile(filepath.Join(e.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	to := step.Name + "/" + name
	if to == step.Source() {
		return errors.New("the exported program itself has that name; give the file another one")
	}
	e.module.Files[to] = data
	return nil
}
