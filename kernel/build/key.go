package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gonbatch/kernel/tool"
)

// moduleLine is the line that differs between the go.mod files of two sessions.
var moduleLine = regexp.MustCompile(`(?m)^module .*$`)

// errUncovered means that a program can't have a plan.
var errUncovered = errors.New("not covered by plans")

// key identifies the plan for the current program. It is a hash of everything that decides how the
// program is compiled and linked, except for the text of its own files, and for the packages
// outside the module cache (the plan has their state).
func (b *builder) key() (string, error) {
	sum := sha256.New()
	files, err := b.goFiles()
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if err := addImports(sum, filepath.Join(b.Dir, name)); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "go.work", "go.work.sum"} {
		text, err := os.ReadFile(filepath.Join(b.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		text = moduleLine.ReplaceAll(text, nil)
		fmt.Fprintf(sum, "%s %d\n%s\n", name, len(text), text)
	}
	info, err := os.Stat(b.Go)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(sum, b.Go, info.Size(), info.ModTime().UnixNano(), b.Flags)
	for _, entry := range settings(b.Environ) {
		fmt.Fprintln(sum, entry)
	}
	if b.hasOuterWorkspace() {
		return "", errUncovered
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// goFiles returns the Go files of the program. A program with sources in other languages has no
// plan.
func (b *builder) goFiles() ([]string, error) {
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		name := entry.Name()
		switch ext := filepath.Ext(name); {
		case ext == ".go" && !strings.HasSuffix(name, "_test.go"):
			files = append(files, name)
		case slices.Contains([]string{".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".s", ".S", ".f", ".syso", ".swig", ".pgo"}, ext):
			return nil, errUncovered
		}
	}
	return files, nil
}

// addImports adds a file's imports to the key. Files with cgo, embedded files or directives have no
// plan.
func addImports(sum hash.Hash, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if strings.Contains(string(text), "//go:") || strings.Contains(string(text), "// +build") {
		return errUncovered
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	var imports []string
	for _, spec := range file.Imports {
		if spec.Path.Value == `"C"` || spec.Path.Value == `"embed"` {
			return errUncovered
		}
		imports = append(imports, spec.Path.Value)
	}
	slices.Sort(imports)
	fmt.Fprintln(sum, filepath.Base(name), slices.Compact(imports))
	return nil
}

// settings returns the variables that matter to the go command and its tools.
func settings(environ []string) []string {
	var found []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "GO") && !strings.HasPrefix(name, "GONB") || strings.HasPrefix(name, "CGO_") || name == "CC" || name == "CXX" || name == "AR" {
			found = append(found, entry)
		}
	}
	slices.Sort(found)
	return found
}

// hasOuterWorkspace reports whether the build depends on files that key doesn't read.
func (b *builder) hasOuterWorkspace() bool {
	flags := tool.Get(b.Environ, "GOFLAGS") + " " + strings.Join(b.Flags, " ")
	for _, name := range []string{"-overlay", "-modfile", "-toolexec"} {
		if strings.Contains(strings.ReplaceAll(flags, name+"= ", ""), name) {
			return true
		}
	}
	work := tool.Get(b.Environ, "GOWORK") // The session's go command sets it.
	return work != "off" && work != filepath.Join(b.Dir, "go.work")
}
