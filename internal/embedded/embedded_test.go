package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", ".b.txt", "main.go", "go.mod", "web/x.go", "web/_y", "web/.z/w", "c/code.c", "links/z",
		"odd/a:b", "odd/what?", "good/x [1].txt", "good/a:b/x", ".h", "other/go.mod", "other/a/b", "outer/x", "outer/.git/y", "outer/in/go.mod", "outer/in/z"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"links/file": "../a.txt", "links/folder": "../web", "links/gone": "none", "link": "web", "gone": "none"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"pipe", "links/pipe"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		pattern string
		want    []string
		fails   string
	}{
		{pattern: "*.txt", want: []string{".b.txt", "a.txt"}},
		{pattern: "web", want: []string{"web/x.go"}},
		{pattern: "all:web", want: []string{"web/.z/w", "web/_y", "web/x.go"}},
		{pattern: "*/*.c", want: []string{"c/code.c"}},
		{pattern: "empty", fails: "//go:embed empty: no file in empty can be embedded: Go leaves out hidden files, unless the pattern begins with all:"},
		{pattern: "links", want: []string{"links/file", "links/z"}},
		{pattern: "link", want: []string{"link/x.go"}},
		{pattern: "pipe", fails: "pipe is neither a file nor a folder"},
		{pattern: "gone", fails: "there is no such file"},
		{pattern: "odd/a:b", fails: "a:b: Go can't embed a file or folder with this name: rename it"},
		{pattern: "odd", fails: "a:b: Go can't embed a file"},
		{pattern: "good", want: []string{"good/x [1].txt"}},
		{pattern: ".h", want: []string{".h"}},
		{pattern: ".", fails: "give a path below the notebook's folder"},
		{pattern: "other", fails: "other is another module, since it has a go.mod"},
		{pattern: "other/a/b", fails: "other is another module"},
		{pattern: "all:outer", want: []string{"outer/x"}},
		{pattern: "no", fails: "//go:embed no: there is no such file"},
		{pattern: "../a", fails: "without .. and not absolute"},
		{pattern: "/a", fails: "without .. and not absolute"},
		{pattern: "[", fails: "syntax error"},
		{pattern: "*.go", fails: "compile main.go into the program: move it into a subfolder"},
		{pattern: "go.*", fails: "compile go.mod into"},
	}
	for _, tt := range tests {
		t.Run(tt.pattern, func(t *testing.T) {
			got, err := Files(dir, tt.pattern)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got %v, want %s", err, tt.fails)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
