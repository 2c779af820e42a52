package build

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
)

// helpers are the kernel's functions that a cell may call: each is in the file of its name.
var helpers = []string{"gonbatch__timeit", "gonbatch__devices", "gonbatch__show"}

// keepFile makes programs keep variables; it is there once %keep was used.
const keepFile = "gonbatch__keep.go"

// keepImportsFile imports what keeps the variables of programs with certain imports.
const keepImportsFile = "gonbatch__keepimports.go"

// OwnFiles are the files of the kernel's that come and go in the cells' module.
func OwnFiles() []string {
	files := []string{keepFile, keepImportsFile, gocell.LogFile}
	for _, name := range helpers {
		files = append(files, name+".go")
	}
	return files
}

var mainBegins = regexp.MustCompile(`(?m)^func main\(\) *\{`)

// prepare writes the program's script, and puts beside main.go what it needs of the kernel's.
func (b *builder) prepare() error {
	script, err := os.ReadFile(filepath.Join(b.Seed, "program"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.Program, script, 0o755); err != nil {
		return err
	}
	text, err := b.readMain()
	if err != nil {
		return err
	}
	keeps, err := b.copySeed(keepFile, true)
	if err != nil {
		return err
	}
	if err := b.importKept(keeps, text); err != nil {
		return err
	}
	if keeps && mainBegins.Match(text) {
		text = mainBegins.ReplaceAll(text, []byte("$0 defer gonbatch__save();"))
		if err := os.WriteFile(b.mainFile(), text, 0o644); err != nil {
			return err
		}
	}
	if _, err := b.copySeed(gocell.LogFile, strings.Contains(string(text), "log.Fatal")); err != nil {
		return err
	}
	for _, name := range helpers {
		if _, err := b.copySeed(name+".go", strings.Contains(string(text), name+"(")); err != nil {
			return err
		}
	}
	return nil
}

// importKept writes the imports that a program needs whose variables are kept.
func (b *builder) importKept(keeps bool, text []byte) error {
	var paths []string
	if file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly); keeps && err == nil {
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value) // The parser has done so.
			paths = append(paths, path)
		}
	}
	target := filepath.Join(b.Dir, keepImportsFile)
	var imports strings.Builder
	for _, path := range gocell.KeepImports(paths) {
		fmt.Fprintf(&imports, "import _ %q\n", path)
	}
	if imports.Len() == 0 {
		if err := os.Remove(target); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(target, []byte("package main\n\n"+imports.String()), 0o644)
}

// mainFile is the file in which GoNB has put the cell.
func (b *builder) mainFile() string {
	if b.isTest() {
		return filepath.Join(b.Dir, mainFiles[1])
	}
	return filepath.Join(b.Dir, mainFiles[0])
}

// readMain reads the program's text, which is hidden still if GoNB has written none since the last
// build; "" if there is none.
func (b *builder) readMain() ([]byte, error) {
	if _, err := os.Lstat(b.mainFile()); err != nil {
		if err := ShowMain(b.Dir); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(b.mainFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// copySeed puts a file of Seed into the module, if it is wanted and there; otherwise the module has
// none.
func (b *builder) copySeed(name string, wanted bool) (bool, error) {
	target := filepath.Join(b.Dir, name)
	text, err := os.ReadFile(filepath.Join(b.Seed, name))
	switch {
	case err == nil && wanted:
		return true, os.WriteFile(target, text, 0o644)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return false, nil
}

// unmarkValue makes the last expression a statement as it stands: it is a call without a value.
func (b *builder) unmarkValue() error {
	text, err := os.ReadFile(b.mainFile())
	if err != nil {
		return err
	}
	plain := strings.NewReplacer(cell.ShowOpen, "", cell.ShowClose, "").Replace(string(text))
	if plain == string(text) {
		return nil
	}
	_, err = b.copySeed("gonbatch__show.go", false)
	err = errors.Join(err, os.WriteFile(b.mainFile(), []byte(plain), 0o644), os.WriteFile(filepath.Join(b.Cell, VoidFile), nil, 0o600))
	if err != nil {
		return fmt.Errorf("show no value: %w", err)
	}
	return nil
}
