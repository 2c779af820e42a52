package source

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"gonbatch"
	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
)

// library returns a small library.
func library() fs.FS {
	return fstest.MapFS{
		"go.mod":              {Data: []byte("module gonbatch\n")},
		"a/a.go":              {Data: []byte("package a\n")},
		"a/a_test.go":         {Data: []byte("package a\n")},
		"a/testdata/file.txt": {Data: []byte("x")},
	}
}

func TestDirWritesOnce(t *testing.T) {
	opt := Options{CacheDir: t.TempDir(), Library: library()}
	first, err := Dir(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(first, "a", "a.go"))
	if err != nil || string(data) != "package a\n" {
		t.Errorf("a.go = %q, %v", data, err)
	}
	info, err := os.Stat(filepath.Join(first, "a", "a.go"))
	if err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("a.go has mode %v, %v; want 0444", info.Mode(), err)
	}
	for _, name := range []string{"a/a_test.go", "a/testdata"} {
		if _, err := os.Stat(filepath.Join(first, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	before, _ := os.Stat(filepath.Join(first, "go.mod"))
	second, err := Dir(context.Background(), opt)
	if err != nil || second != first {
		t.Fatalf("second call: %q, %v; want %q", second, err, first)
	}
	if after, _ := os.Stat(filepath.Join(first, "go.mod")); !os.SameFile(before, after) {
		t.Error("the second call wrote the source again")
	}
}

func TestDirAtOnce(t *testing.T) {
	cache := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, err := Dir(context.Background(), Options{CacheDir: cache, Library: library()})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(dir, "a", "a.go")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	entries, err := os.ReadDir(filepath.Join(cache, "source"))
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the cache: %v, %v; want one folder", entries, err)
	}
}

func TestDirErrors(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte("module other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(other, "go.mod")
	tests := []struct {
		name, override, cache, want string
	}{
		{"no checkout", "/no/such", "", `GONBATCH_SOURCE="/no/such" is not gonbatch's source`},
		{"another module", other, "", `its go.mod begins with "module other", want "module gonbatch"`},
		{"cache is a file", "", file, "gonbatch's source in " + file},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			getenv := func(string) string { return tt.override }
			_, err := Dir(context.Background(), Options{Getenv: getenv, CacheDir: tt.cache, Library: library()})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestOverride(t *testing.T) {
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{rundir.EnvSource: filepath.Join("..", "..")}[name] }
	if dir, err := Dir(context.Background(), Options{Getenv: getenv}); err != nil || dir != checkout {
		t.Errorf("Dir = %q, %v; want %q", dir, err, checkout)
	}
}

func TestHashCountsNamesAndContents(t *testing.T) {
	base := fstest.MapFS{"a.go": {Data: []byte("x")}}
	hash := func(f fs.FS) string {
		h, err := Hash(f)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for name, other := range map[string]fstest.MapFS{
		"content": {"a.go": {Data: []byte("y")}},
		"name":    {"b.go": {Data: []byte("x")}},
		"more":    {"a.go": {Data: []byte("x")}, "b.go": {}},
	} {
		if hash(base) == hash(other) {
			t.Errorf("%s changed and the hash did not", name)
		}
	}
}

// TestEmbeddedIsComplete fails when an embedded package imports a package of gonbatch that is not
// embedded.
func TestEmbeddedIsComplete(t *testing.T) {
	dir, err := Dir(context.Background(), Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "-e", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := bounded.Output(cmd)
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p.Imports
	}
	if len(packages) == 0 {
		t.Fatal("no package is embedded")
	}
	for name, imports := range packages {
		for _, imported := range imports {
			if _, ok := packages[imported]; !ok && (imported == "gonbatch" || strings.HasPrefix(imported, "gonbatch/")) {
				t.Errorf("%s imports %s, which is not embedded: add its folder to gonbatch.go", name, imported)
			}
		}
	}
}

// TestImportableIsEmbedded fails when a folder that notebooks import from exists but is not
// embedded.
func TestImportableIsEmbedded(t *testing.T) {
	for _, folder := range []string{"distributed", "data", "models", "internal/plugin", "internal/fetch", "internal/rundir"} {
		programs, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
		if err != nil || len(programs) == 0 {
			continue // That part of the library is not there.
		}
		if _, err := fs.Stat(gonbatch.Library, folder); err != nil {
			t.Errorf("%s is not embedded: add it to gonbatch.go", folder)
		}
	}
}

func TestHashDir(t *testing.T) {
	cache := t.TempDir()
	dir, err := Dir(t.Context(), Options{CacheDir: cache, Library: library()})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Hash(library())
	if err != nil {
		t.Fatal(err)
	}
	got, err := HashDir(dir)
	if err != nil || !strings.HasPrefix(want, got) || len(got) < 16 {
		t.Errorf("HashDir of what Dir wrote = %q, %v; want the start of %q", got, err, want)
	}
	for _, name := range []string{"checkout", "0123456789abcdef", filepath.Join("source", "main")} {
		t.Run(name, func(t *testing.T) {
			checkout := filepath.Join(t.TempDir(), name)
			if err := os.MkdirAll(checkout, 0o755); err != nil {
				t.Fatal(err)
			}
			var hashes []string
			for _, text := range []string{"module gonbatch\n", "module gonbatch\n\ngo 1.26\n"} {
				if err := os.WriteFile(filepath.Join(checkout, "go.mod"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				hash, err := HashDir(checkout)
				if err != nil {
					t.Fatal(err)
				}
				hashes = append(hashes, hash)
			}
			if hashes[0] == hashes[1] {
				t.Error("a checkout was changed, its hash was not")
			}
		})
	}
}
