package build

import (
	"crypto/sha256"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/embedded"
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
	name := filepath.Join(b.Dir, "go.mod")
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

// packageState returns a hash of what a package is compiled from, apart from tests, and the
// package's imports. Other files in its folder may be large.
func packageState(dir string) (hash string, imports []string) {
	entries, err := os.ReadDir(dir)
	sum := sha256.New()
	fmt.Fprintln(sum, err)
	for _, entry := range entries {
		if entry.IsDir() || !embedded.IsSource(entry.Name()) || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		text := addSource(sum, dir, entry.Name())
		if filepath.Ext(entry.Name()) != ".go" {
			continue
		}
		imports = append(imports, importPaths(text)...)
		for _, file := range embeddedBy(dir, text) {
			addSource(sum, dir, filepath.FromSlash(file))
		}
	}
	return fmt.Sprintf("package %x", sum.Sum(nil)), imports
}

// addSource adds a file in a folder to a hash, and returns its text. What is no file, such as a
// pipe, has none.
func addSource(sum io.Writer, dir, name string) []byte {
	path := filepath.Join(dir, name)
	var text []byte
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() {
		text, err = os.ReadFile(path)
	}
	fmt.Fprintf(sum, "%s %d %v\n%s\n", name, len(text), err, text)
	return text
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

// embeddedBy returns the files in a folder that a Go file there embeds.
func embeddedBy(dir string, text []byte) (files []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil // The compiler has reported it.
	}
	vars, _ := embedded.Variables(file, string(text))
	for _, v := range vars {
		for _, pattern := range v.Patterns {
			found, _ := embedded.Files(dir, pattern)
			files = append(files, found...)
		}
	}
	return files
}
