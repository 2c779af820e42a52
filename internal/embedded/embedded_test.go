package embedded

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	tests := []struct {
		comment, want string
		fails         bool
	}{
		{comment: "//go:embed a.txt \"b c\" `d`", want: "a.txt|b c|d"},
		{comment: "// A file.\n//go:embed a\n//go:embed b", want: "a|b"},
		{comment: "// go:embed a"},
		{comment: "//go:embedded a"},
		{comment: "//go:generate a"},
		{comment: "//go:embed \"a", fails: true},
	}
	for _, tt := range tests {
		doc := &ast.CommentGroup{}
		for line := range strings.SplitSeq(tt.comment, "\n") {
			doc.List = append(doc.List, &ast.Comment{Text: line})
		}
		got, err := Patterns(doc)
		if strings.Join(got, "|") != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %q, %v, want %s", tt.comment, got, err, tt.want)
		}
	}
	if got, err := Patterns(nil); got != nil || err != nil {
		t.Errorf("no comment: %q, %v", got, err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", ".b.txt", "main.go", "go.mod", "web/x.go", "web/_y", "web/.z/w", "c/code.c"} {
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
	tests := []struct {
		pattern string
		want    []string
		fails   string
	}{
		{pattern: "*.txt", want: []string{".b.txt", "a.txt"}},
		{pattern: "web", want: []string{"web/x.go"}},
		{pattern: "all:web", want: []string{"web/.z/w", "web/_y", "web/x.go"}},
		{pattern: "*/*.c", want: []string{"c/code.c"}},
		{pattern: "empty", fails: "there is no such file in the notebook's folder, " + dir},
		{pattern: "no", fails: "//go:embed no: there is no such file"},
		{pattern: "../a", fails: "without .. and not absolute"},
		{pattern: "/a", fails: "without .. and not absolute"},
		{pattern: "[", fails: "syntax error"},
		{pattern: "*.go", fails: "take main.go for a part of it: move the file into a folder"},
		{pattern: "go.*", fails: "take go.mod for a part"},
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
