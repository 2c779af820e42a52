// Package embedded reads //go:embed lines of a notebook, and finds the files that they name. The
// program of a cell is compiled in a folder of its own, so the files must be taken from the
// notebook's folder: submit copies them, and the kernel tells the compiler where they are.
//
//	patterns, err := embedded.Patterns(spec.Doc) // //go:embed words.txt data
//	for _, pattern := range patterns {
//		names, err := embedded.Files("/home/me/notebooks", pattern)
//	}
package embedded

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Directive begins the comment above a variable with embedded files.
const Directive = "//go:embed"

// Patterns returns the patterns of the //go:embed lines in a variable's comment.
func Patterns(doc *ast.CommentGroup) (patterns []string, err error) {
	if doc == nil {
		return nil, nil
	}
	for _, comment := range doc.List {
		directive, ok := ast.ParseDirective(token.NoPos, comment.Text)
		if !ok || "//"+directive.Tool+":"+directive.Name != Directive {
			continue
		}
		args, err := directive.ParseArgs()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", comment.Text, err)
		}
		for _, arg := range args {
			patterns = append(patterns, arg.Arg)
		}
	}
	return patterns, nil
}

// Files returns the files in the notebook's folder that a pattern matches by go:embed's rules, as
// paths with slashes, relative to the folder.
func Files(dir, pattern string) (names []string, err error) {
	glob, all := strings.CutPrefix(pattern, "all:")
	if !fs.ValidPath(glob) {
		return nil, fmt.Errorf("%s %s: give a path below the notebook's folder, without .. and not absolute", Directive, pattern)
	}
	tree := os.DirFS(dir)
	matches, err := fs.Glob(tree, glob)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", Directive, pattern, err)
	}
	for _, match := range matches {
		below, err := filesBelow(tree, match, all)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", Directive, pattern, err)
		}
		names = append(names, below...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s %s: there is no such file in the notebook's folder, %s", Directive, pattern, dir)
	}
	return names, nil
}

// filesBelow returns a file, or the files in a folder. Below the folder, hidden files count only if
// all is set.
func filesBelow(tree fs.FS, match string, all bool) (names []string, err error) {
	err = fs.WalkDir(tree, match, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != match && !all && strings.ContainsRune("._", rune(path.Base(name)[0]))
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		case isSource(name):
			return fmt.Errorf("beside a program, Go would take %s for a part of it: move the file into a folder", name)
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// sourceSuffixes end the names of files that Go compiles.
var sourceSuffixes = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".m", ".h", ".hh", ".hpp", ".hxx", ".f", ".F", ".for", ".f90", ".s", ".S", ".sx", ".swig", ".swigcxx", ".syso"}

// isSource reports whether Go would use a file that lies beside a program.
func isSource(name string) bool {
	return slices.Contains(sourceSuffixes, path.Ext(name)) && !strings.Contains(name, "/") ||
		slices.Contains([]string{"go.mod", "go.sum", "go.work", "go.work.sum"}, name)
}
