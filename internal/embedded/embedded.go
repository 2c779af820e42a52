// Package embedded reads //go:embed lines of a notebook, and finds the files that they name. The
// program of a cell is compiled in a folder of its own, so the files must be taken from the
// notebook's folder: submit copies them, and the kernel tells the compiler where they are.
//
//	variables, err := embedded.Variables(file, text) // //go:embed words.txt data
//	for _, pattern := range variables[0].Patterns {
//		names, err := embedded.Files("/home/me/notebooks", pattern)
//	}
package embedded

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/module"
)

// Directive begins the comment above a variable with embedded files.
const Directive = "//go:embed"

// Files returns the files in the notebook's folder that a pattern matches by go:embed's rules, as
// paths with slashes, relative to the folder. Unlike Go, it also takes a link
// to a file for the file.
func Files(dir, pattern string) (names []string, err error) {
	glob, all := strings.CutPrefix(pattern, "all:")
	if !fs.ValidPath(glob) || glob == "." {
		return nil, fmt.Errorf("%s %s: give a path below the notebook's folder, without .. and not absolute", Directive, pattern)
	}
	tree := os.DirFS(dir)
	matches, err := fs.Glob(tree, glob)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", Directive, pattern, err)
	}
	for _, match := range matches {
		below, err := filesOf(tree, match, all)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", Directive, pattern, err)
		}
		names = append(names, below...)
	}
	if len(names) == 0 {
		return nil, &MissingError{pattern, dir}
	}
	return names, nil
}

// MissingError means that a pattern matches no file in the notebook's folder.
type MissingError struct{ Pattern, Dir string }

// Error names the pattern and the folder.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %s: there is no such file in the notebook's folder, %s", Directive, e.Pattern, e.Dir)
}

// filesOf returns a file, or the files in a folder that Go would embed.
func filesOf(tree fs.FS, match string, all bool) (names []string, err error) {
	if err := checkPlace(tree, match); err != nil {
		return nil, err
	}
	err = fs.WalkDir(tree, match, func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == match || !isLeftOut(tree, name, all)):
			return nil
		case entry.IsDir():
			return fs.SkipDir
		case name != match && isHidden(base) && (!all || isBadName(base)):
			return nil
		case isBadName(base):
			return badName(base)
		case name == match && !isRegular(tree, name):
			return fmt.Errorf("%s is neither a file nor a folder", name)
		case !isRegular(tree, name):
			return nil
		case !isInput(name):
			return fmt.Errorf("%s: Go can't embed a file whose path begins with %q, or with _cgo_: rename it", name, name[:1])
		case IsSource(name):
			return fmt.Errorf("the go command would compile %s into the program: move it into a subfolder", name)
		}
		names = append(names, name)
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no file in %s can be embedded: Go leaves out hidden files, unless the pattern begins with all:, and folders with a go.mod", match)
	}
	return names, err
}

// checkPlace refuses a path that Go refuses wherever it is: one with a name that no module can
// have, or in another module.
func checkPlace(tree fs.FS, match string) error {
	for at := match; at != "."; at = path.Dir(at) {
		if isBadName(path.Base(at)) {
			return badName(path.Base(at))
		}
		if hasModule(tree, at) {
			return fmt.Errorf("%s is another module, since it has a go.mod: move the files out of it", at)
		}
	}
	return nil
}

// isLeftOut reports whether Go leaves out a folder below an embedded one.
func isLeftOut(tree fs.FS, folder string, all bool) bool {
	base := path.Base(folder)
	return isBadName(base) || isHidden(base) && !all || hasModule(tree, folder)
}

func isHidden(name string) bool { return strings.ContainsRune("._", rune(name[0])) }

// isBadName reports whether no module can have a file or a folder of that name.
func isBadName(name string) bool {
	return module.CheckFilePath(name) != nil || slices.Contains([]string{".bzr", ".hg", ".git", ".svn"}, name)
}

// isInput reports whether the go command takes a path for the name of a package's file. Others
// might be flags of its tools (SafeArg in cmd/go/internal/load).
func isInput(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	isSafe := first >= utf8.RuneSelf || unicode.IsLetter(first) || unicode.IsDigit(first) || first == '.' || first == '_'
	return isSafe && !strings.HasPrefix(name, "_cgo_")
}

func badName(name string) error {
	return fmt.Errorf("%s: Go can't embed a file or folder with this name: rename it", name)
}

func hasModule(tree fs.FS, folder string) bool {
	_, err := fs.Stat(tree, path.Join(folder, "go.mod"))
	return err == nil
}

// isRegular reports whether there is a file, and not a pipe, a device or a link to a folder.
func isRegular(tree fs.FS, name string) bool {
	info, err := fs.Stat(tree, name)
	return err == nil && info.Mode().IsRegular()
}

// sourceSuffixes end the names of files that Go compiles.
var sourceSuffixes = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".m", ".h", ".hh", ".hpp", ".hxx", ".f", ".F", ".for", ".f90", ".s", ".S", ".sx", ".swig", ".swigcxx", ".syso"}

// IsSource reports whether Go would use a file next to a program. The name is relative to
// the program's folder.
func IsSource(name string) bool {
	return slices.Contains(sourceSuffixes, path.Ext(name)) && !strings.Contains(name, "/") && !isHidden(name) ||
		slices.Contains([]string{"go.mod", "go.sum", "go.work", "go.work.sum"}, name)
}
