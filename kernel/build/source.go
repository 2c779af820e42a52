package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
	"gonbatch/kernel/cell"
)

// helpers are the kernel's functions that a cell may call, each in the file of its name.
var helpers = []string{"gonbatch__timeit", "gonbatch__devices", "gonbatch__show"}

// keepFile makes programs keep variables; it exists once %keep was used.
const keepFile = "gonbatch__keep.go"

// keepImportsFile has what keepFile needs from the program: imports, and the declarations of the
// variables. retryFile is for tests, and sorts after main_test.go so that its init functions run
// last.
const (
	keepImportsFile = "gonbatch__keepimports.go"
	retryFile       = "zz_gonbatch__keep_test.go"
)

// OwnFiles returns the kernel's files that come and go in the cells' module.
func OwnFiles() []string {
	files := []string{keepFile, keepImportsFile, retryFile, gocell.LogFile}
	for _, name := range helpers {
		files = append(files, name+".go")
	}
	return files
}

var mainBegins = regexp.MustCompile(`(?m)^func main\(\) *\{`)

// prepare writes the program's script, and puts the kernel's files that the program needs next to
// main.go.
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
	return b.addFiles(text)
}

// addFiles puts the kernel's other files that the program needs next to main.go.
func (b *builder) addFiles(text []byte) error {
	keeps, err := b.copySeed(keepFile, true)
	if err != nil {
		return err
	}
	if err := b.keep(keeps, text); err != nil {
		return err
	}
	if err := b.writeOwn(gocell.LogFile, gocell.LogSource(false, keeps), keeps || strings.Contains(string(text), "log.Fatal")); err != nil {
		return err
	}
	for _, name := range helpers {
		if _, err := b.copySeed(name+".go", strings.Contains(string(text), name+"(")); err != nil {
			return err
		}
	}
	return nil
}

// keep makes a program keep its variables, if keeps is set.
func (b *builder) keep(keeps bool, text []byte) error {
	var own strings.Builder
	if keeps {
		own.WriteString("package main\n\nimport gonbatch__keep \"" + gocell.KeepPackage + "\"\n\n")
		for _, path := range gocell.KeepImports(gomodule.ImportsOf(text)) {
			fmt.Fprintf(&own, "import _ %q\n\n", path)
		}
		hashes := b.declarations(string(text))
		if _, err := b.goFiles(); err == nil && !b.isTest() && len(b.userFiles()) == 1 {
			markUnused(hashes, string(text))
		}
		fmt.Fprintf(&own, "var gonbatch__declared = gonbatch__keep.Declared(%#v)\n\n", hashes)
	}
	if keeps && mainBegins.Match(text) {
		changed, names := gocell.SaveOnExit(string(mainBegins.ReplaceAll(text, []byte("$0 defer gonbatch__begin()();"))))
		for _, name := range names {
			own.WriteString(gocell.ExitFunc(name, "gonbatch__keep"))
			changed += "\nvar _ = " + name + ".Exit\n" // The import is used.
		}
		if err := os.WriteFile(b.mainFile(), []byte(changed), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(
		b.writeOwn(keepImportsFile, own.String(), keeps),
		b.writeOwn(retryFile, "package main\n\nfunc init() { gonbatch__kept().Retry() }\n", keeps && b.isTest()))
}

// declarations returns the hashes of the declarations of a program's variables. The code that their
// initial values come from counts.
func (b *builder) declarations(text string) map[string]string {
	code, hashes := b.modules(), map[string]string{}
	if code != nil {
		code.Own, _ = readMod(filepath.Join(b.Seed, "go.mod")) // Each session starts with it. Without it, all modules count.
	}
	for name, d := range gocell.Declarations(text) {
		var state []string
		if code != nil {
			state = append(state, code.State(d.Imports)...)
		}
		hashes[name] = d.Hash(state)
	}
	return hashes
}

// userFiles returns the Go files of the program that aren't the kernel's own: GoNB's, and those
// that the user has put next to it.
func (b *builder) userFiles() (files []string) {
	entries, _ := os.ReadDir(b.Dir) // The compiler reports it.
	others := append(OwnFiles(), mainFiles[:]...)
	for _, entry := range entries {
		name := filepath.Join(b.Dir, entry.Name())
		if filepath.Ext(name) == ".go" && (name == b.mainFile() || !slices.Contains(others, entry.Name())) {
			files = append(files, name)
		}
	}
	return files
}

// writeOwn writes one of the kernel's files into the module if it is wanted, and removes it
// otherwise.
func (b *builder) writeOwn(name, text string, wanted bool) error {
	target := filepath.Join(b.Dir, name)
	if wanted {
		return os.WriteFile(target, []byte(text), 0o644)
	}
	if err := os.Remove(target); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mainFile returns the file in which GoNB has put the cell.
func (b *builder) mainFile() string {
	if b.isTest() {
		return filepath.Join(b.Dir, mainFiles[1])
	}
	return filepath.Join(b.Dir, mainFiles[0])
}

// readMain reads the program's text, which is still hidden if GoNB has written none since the last
// build; it returns "" if there is none.
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

// copySeed copies a file of Seed into the module if it is wanted and exists, and removes it from
// the module otherwise.
func (b *builder) copySeed(name string, wanted bool) (bool, error) {
	text, err := os.ReadFile(filepath.Join(b.Seed, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	wanted = wanted && err == nil
	return wanted, b.writeOwn(name, string(text), wanted)
}

// unmarkValue turns the last expression back into a statement, because it is a call without a
// value.
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
