package gomodule

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// graph is a random program of modules: edges[i] are the modules that module i requires, and
// versions are those in the program's go.mod.
type graph struct {
	edges    [][]int
	versions []int
	// folder is the module that a folder replaces, and source its text.
	folder int
	source string
}

func path(i int) string { return fmt.Sprintf("example.com/m%d", i) }

func randomGraph(random *rand.Rand) graph {
	g := graph{folder: -1, source: "package m\n"}
	for range 2 + random.IntN(8) {
		g.edges, g.versions = append(g.edges, nil), append(g.versions, random.IntN(3))
	}
	for range random.IntN(2 * len(g.edges)) {
		from := random.IntN(len(g.edges))
		g.edges[from] = append(g.edges[from], random.IntN(len(g.edges)))
	}
	if random.IntN(2) == 0 {
		g.folder = random.IntN(len(g.edges))
	}
	return g
}

// reachable returns the modules that a module needs, and itself.
func (g graph) reachable(from int) map[int]bool {
	all := map[int]bool{from: true}
	for range g.edges {
		for i := range g.edges {
			for _, to := range g.edges[i] {
				all[to] = all[to] || all[i]
			}
		}
	}
	return all
}

// state writes the modules and returns the state of an import of module 0.
func (g graph) state(t *testing.T) (direct, indirect []string) {
	t.Helper()
	dir := t.TempDir()
	text := "module program\n"
	for i, version := range g.versions {
		v := fmt.Sprintf("v1.%d.0", version)
		text += fmt.Sprintf("require %s %s\n", path(i), v)
		mod := "module " + path(i) + "\n"
		for _, to := range g.edges[i] {
			mod += "require " + path(to) + " v1.0.0\n"
		}
		name := filepath.Join(dir, "cache", "download", path(i), "@v", v+".mod")
		if i == g.folder {
			name = filepath.Join(dir, "local", "go.mod")
			text += "replace " + path(i) + " => ./local\n"
			write(t, filepath.Join(dir, "local", "a.go"), g.source)
		}
		write(t, name, mod)
	}
	mod, err := modfile.Parse("go.mod", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := Code{Mod: mod, Folders: Folders(mod.Replace, dir), Cache: dir}
	return c.State([]string{path(0)}), c.Indirect([]string{path(0)})
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCode compares with a simple model: another version of a module counts if the import needs it,
// and so does another source in a folder, if the import is in it.
func TestCode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		g := randomGraph(random)
		needed := g.reachable(0)
		direct, indirect := g.state(t)
		changed := g
		changed.versions = slices.Clone(g.versions)
		at := random.IntN(len(g.versions))
		changed.versions[at] += 3
		newDirect, newIndirect := changed.state(t)
		if got, want := !slices.Equal(direct, newDirect), at == 0 && g.folder != 0; got != want {
			t.Errorf("%d: module %d of %+v: state changed: %v, want %v", i, at, g, got, want)
		}
		if got, want := !slices.Equal(indirect, newIndirect), at != 0 && needed[at]; got != want {
			t.Errorf("%d: module %d of %+v: indirect state changed: %v, want %v:\n%q\n%q", i, at, g, got, want, indirect, newIndirect)
		}
		changed = g
		changed.source += "var X int\n"
		if newDirect, _ := changed.state(t); slices.Equal(direct, newDirect) == (g.folder == 0) {
			t.Errorf("%d: another source in %+v: %q, before %q", i, g, newDirect, direct)
		}
	}
}

// TestFolderOf: the innermost of nested modules has a package.
func TestFolderOf(t *testing.T) {
	folders := map[string]string{"example.com/a": "/a", "example.com/a/b": "/b"}
	for path, want := range map[string]string{
		"example.com/a": "/a example.com/a", "example.com/a/c/d": "/a/c/d example.com/a", "example.com/a/b/c": "/b/c example.com/a/b",
		"example.com/ab": "", "fmt": "",
	} {
		dir, in := FolderOf(path, folders)
		if got := strings.TrimSpace(dir + " " + in); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestCacheDir(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/m": {"GOMODCACHE": "/m", "GOPATH": "/p"}, "/p/pkg/mod": {"GOPATH": "/p:/q", "HOME": "/h"}, "/h/go/pkg/mod": {"HOME": "/h"}, "": {},
	} {
		if got := CacheDir(func(name string) string { return env[name] }); got != want {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}

// TestUseFolder: the replacements of a module in a workspace apply too, except that of gonbatch.
func TestUseFolder(t *testing.T) {
	dir := t.TempDir()
	text := "module example.com/used\n\nreplace example.com/other => ../other\n\nreplace gonbatch => ../gonbatch\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	mod := new(modfile.File)
	if err := mod.AddModuleStmt("x"); err != nil {
		t.Fatal(err)
	}
	path, err := UseFolder(mod, dir)
	if err != nil || path != "example.com/used" {
		t.Fatalf("path %q, %v", path, err)
	}
	want := map[string]string{"example.com/used": dir, "example.com/other": filepath.Join(dir, "..", "other")}
	if got := Folders(mod.Replace, ""); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPackageState: what a package embeds counts, however the folder and the files are called.
func TestPackageState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[1] *")
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "package a\n\nimport \"embed\"\n\n//go:embed \"a b\" `c d` \"\\u0065\"\n//go:embed all:f g/*.txt\nvar files embed.FS\n")
	last, _ := PackageState(dir)
	for name, counts := range map[string]bool{"a b": true, "c d": true, "e": true, "f/in/.h": true, "g/i.txt": true, "g/i.bin": false, "j": false} {
		write(name, "text")
		state, _ := PackageState(dir)
		if (state != last) != counts {
			t.Errorf("%s counts: %v, want %v", name, state != last, counts)
		}
		last = state
	}
}
