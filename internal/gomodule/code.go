package gomodule

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// Code identifies the code of the packages that a program imports.
type Code struct {
	// Mod is the program's go.mod.
	Mod *modfile.File
	// Own is gonbatch's own go.mod, whose modules don't count for State in the same version: they
	// change only when gonbatch is installed again. If it is nil, all count.
	Own *modfile.File
	// Folders are the folders, by module path, of modules whose sources may change.
	Folders map[string]string
	// Cache is the folder of downloaded modules. Without it, Indirect knows only modules in
	// folders.
	Cache string
}

// Folders returns the folders with which a go.mod replaces modules. Relative ones are below dir.
func Folders(replace []*modfile.Replace, dir string) map[string]string {
	folders := map[string]string{}
	for _, r := range replace {
		if modfile.IsDirectoryPath(r.New.Path) {
			folders[r.Old.Path] = absolute(r.New.Path, dir)
		}
	}
	return folders
}

// State returns what identifies the code of imported packages: the versions of their modules, and
// the sources of packages in folders and of what these import there. The standard library and
// gonbatch don't count: they change only when they are installed again.
func (c *Code) State(imports []string) (state []string) {
	state, _ = c.walk(imports)
	return state
}

// Indirect returns the versions of all other modules that the modules of these imports require,
// directly or not, sorted: they may provide packages that the imports need.
func (c *Code) Indirect(imports []string) (state []string) {
	_, open := c.walk(imports)
	seen := map[string]bool{}
	for _, path := range open {
		seen[path] = true
	}
	for len(open) > 0 {
		path := open[0]
		open = open[1:]
		for _, required := range c.requires(path) {
			if !seen[required] && c.version(required) != "" {
				seen[required] = true
				open, state = append(open, required), append(state, "indirect "+c.version(required))
			}
		}
	}
	slices.Sort(state)
	return state
}

// walk returns the state of imports, and the paths of their modules.
func (c *Code) walk(imports []string) (state, modules []string) {
	open := slices.Clone(imports)
	for seen := map[string]bool{}; len(open) > 0; {
		path := open[0]
		open = open[1:]
		if seen[path] || IsOwn(path) {
			continue
		}
		seen[path] = true
		if dir, in := FolderOf(path, c.Folders); in != "" {
			hash, imported := PackageState(dir)
			state, open, modules = append(state, hash), append(open, imported...), append(modules, in)
		} else if in := Containing(c.Mod, path); in.Path != "" && !c.isOwn(in.Path) {
			state, modules = append(state, "module "+c.version(in.Path)), append(modules, in.Path)
		}
	}
	slices.Sort(modules)
	return state, slices.Compact(modules)
}

// isOwn reports whether a module is gonbatch's, in gonbatch's version.
func (c *Code) isOwn(path string) bool {
	if c.Own == nil {
		return false
	}
	own := Code{Mod: c.Own}
	return own.version(path) == c.version(path)
}

// version returns the version of a required module, and what replaces it; "" if it is not required.
func (c *Code) version(path string) string {
	text := ""
	for _, r := range c.Mod.Require {
		if r.Mod.Path == path {
			text = r.Mod.String()
		}
	}
	for _, r := range c.Mod.Replace {
		if r.Old.Path == path && text != "" {
			text += " => " + r.New.String()
		}
	}
	return text
}

// requires returns the modules that a module requires; none if its go.mod can't be read.
func (c *Code) requires(path string) (paths []string) {
	name := c.modFile(path)
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	mod, err := modfile.ParseLax(name, text, nil)
	if err != nil {
		return nil
	}
	for _, r := range mod.Require {
		paths = append(paths, r.Mod.Path)
	}
	return paths
}

// modFile returns the name of a module's go.mod; "" if it is not known.
func (c *Code) modFile(path string) string {
	if dir := c.Folders[path]; dir != "" {
		return filepath.Join(dir, "go.mod")
	}
	in := Containing(c.Mod, path)
	for _, r := range c.Mod.Replace {
		if r.Old.Path == path && (r.Old.Version == "" || r.Old.Version == in.Version) {
			in = r.New
		}
	}
	escaped, err := module.EscapePath(in.Path)
	version, versionErr := module.EscapeVersion(in.Version)
	if c.Cache == "" || cmp.Or(err, versionErr) != nil {
		return ""
	}
	return filepath.Join(c.Cache, "cache", "download", escaped, "@v", version+".mod")
}

// FolderOf returns the folder of a package, and the path of its module, if a folder has the module.
// The innermost of nested modules counts.
func FolderOf(path string, folders map[string]string) (dir, in string) {
	for module, root := range folders {
		if within(path, module) && len(module) > len(in) {
			in, dir = module, filepath.Join(root, strings.TrimPrefix(path, module))
		}
	}
	return dir, in
}

// PackageState returns a hash of what a package is compiled from, apart from tests, and the
// package's imports. Other files in its folder may be large: only those that it embeds count.
func PackageState(dir string) (hash string, imports []string) {
	entries, err := os.ReadDir(dir)
	sum := sha256.New()
	fmt.Fprintln(sum, err)
	for _, entry := range entries {
		if entry.IsDir() || !isSource(entry.Name()) || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		text := addSource(sum, dir, entry.Name())
		if filepath.Ext(entry.Name()) != ".go" {
			continue
		}
		imports = append(imports, ImportsOf(text)...)
		addEmbedded(sum, dir, text)
	}
	return fmt.Sprintf("package %x", sum.Sum(nil)), imports
}

// addSource adds a file in a folder to a hash, and returns its text. What is not a file, such as a
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

var (
	embedLine    = regexp.MustCompile(`(?m)^[ \t]*//go:embed[ \t](.*)$`)
	embedPattern = regexp.MustCompile("\"[^\"]*\"|`[^`]*`|\\S+")
)

// addEmbedded adds the files that a Go file in a folder may embed to a hash.
func addEmbedded(sum io.Writer, dir string, text []byte) {
	files := os.DirFS(dir) // The folder's own name is no pattern.
	for _, line := range embedLine.FindAllSubmatch(text, -1) {
		for _, pattern := range embedPattern.FindAllString(string(line[1]), -1) {
			if unquoted, err := strconv.Unquote(pattern); err == nil {
				pattern = unquoted
			}
			found, _ := fs.Glob(files, strings.TrimPrefix(pattern, "all:"))
			for _, path := range found {
				_ = fs.WalkDir(files, path, func(path string, _ fs.DirEntry, _ error) error {
					addSource(sum, dir, path)
					return nil
				})
			}
		}
	}
}

// sourceSuffixes end the names of files that Go compiles.
var sourceSuffixes = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".m", ".h", ".hh", ".hpp", ".hxx", ".f", ".F", ".for", ".f90", ".s", ".S", ".sx", ".swig", ".swigcxx", ".syso"}

// isSource reports whether Go uses a file in a package's folder.
func isSource(name string) bool {
	return slices.Contains(sourceSuffixes, filepath.Ext(name)) && !strings.ContainsRune("._", rune(name[0]))
}

// ImportsOf returns the imports of a Go file; none if it can't be parsed.
func ImportsOf(text []byte) (paths []string) {
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

// CacheDir returns the folder of downloaded modules, given the environment; "" if it is not known.
func CacheDir(getenv func(string) string) string {
	if dir := getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	first := filepath.SplitList(getenv("GOPATH"))
	if home := getenv("HOME"); len(first) == 0 && home != "" {
		first = []string{filepath.Join(home, "go")}
	}
	if len(first) == 0 {
		return ""
	}
	return filepath.Join(first[0], "pkg", "mod")
}
