package build

import (
	"crypto/sha256"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gocell"
)

// libraryModule is gonbatch's own module: it changes only when gonbatch is installed again.
const libraryModule = "gonbatch"

// moduleState returns what identifies the code of imported packages: the versions of their modules,
// and the sources of packages in local modules and of what these import there. The standard library
// and gonbatch don't count.
func (b *builder) moduleState(imports []string) (state []string) {
	local, err := b.localModules()
	if err != nil {
		return nil // The compiler has reported it.
	}
	versions := b.moduleVersions()
	open := slices.Clone(imports)
	for seen := map[string]bool{}; len(open) > 0; {
		path := open[0]
		open = open[1:]
		if seen[path] || gocell.IsStandard(path) || strings.HasPrefix(path+"/", libraryModule+"/") {
			continue
		}
		seen[path] = true
		dir, ok := folderOf(path, local)
		if !ok {
			state = append(state, versionOf(path, versions))
			continue
		}
		hash, imported := packageState(dir)
		state, open = append(state, hash), append(open, imported...)
	}
	return state
}

// moduleVersions returns the versions, by module path, of the modules in go.mod.
func (b *builder) moduleVersions() map[string]string {
	versions := map[string]string{}
	name := filepath.Join(b.modDir(), "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return versions
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		return versions
	}
	for _, r := range mod.Require {
		versions[r.Mod.Path] = r.Mod.String()
	}
	for _, r := range mod.Replace {
		if versions[r.Old.Path] != "" {
			versions[r.Old.Path] += " => " + r.New.String()
		}
	}
	return versions
}

// versionOf returns the module of a package, with its version: of nested modules, the innermost.
func versionOf(path string, versions map[string]string) string {
	longest, version := "", ""
	for module, text := range versions {
		if strings.HasPrefix(path+"/", module+"/") && len(module) > len(longest) {
			longest, version = module, text
		}
	}
	return "module " + version
}

// packageState returns a hash of the files in a package's folder, apart from tests, and the
// package's imports.
func packageState(dir string) (hash string, imports []string) {
	entries, err := os.ReadDir(dir)
	sum := sha256.New()
	fmt.Fprintln(sum, err)
	for _, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		if entry.IsDir() || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		fmt.Fprintf(sum, "%s %d %v\n%s\n", entry.Name(), len(text), err, text)
		if filepath.Ext(name) == ".go" {
			imports = append(imports, importPaths(text)...)
		}
	}
	return fmt.Sprintf("package %x", sum.Sum(nil)), imports
}

// importPaths returns the imports of a Go file.
func importPaths(text []byte) (paths []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly)
	if err != nil {
		return nil
	}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // The parser has done so without an error.
		paths = append(paths, path)
	}
	return paths
}
