package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseWidth is where comments and Markdown prose wrap. A tab counts as 4 columns.
const proseWidth = 100

// unwrapped are folders with longer lines. The list only shrinks.
var unwrapped = []string{}

// TestProseWidth finds comments and Markdown prose that are not wrapped.
func TestProseWidth(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, name := range tracked(t, "*.go", "*.md", ":!bench/results") { // A benchmark writes those.
		text, err := os.ReadFile(filepath.Join(sourceRoot(t), name))
		if os.IsNotExist(err) {
			continue // Removed, but not committed yet.
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range tooWide(t, name, string(text)) {
			folder := within(filepath.ToSlash(filepath.Dir(name)), unwrapped)
			if found[folder] = true; folder == "" {
				t.Errorf("%s:%d: wrap the line at %d columns", name, line, proseWidth)
			}
		}
	}
	for _, folder := range unwrapped {
		if !found[folder] {
			t.Errorf("every line in %s is wrapped: remove it from unwrapped", folder)
		}
	}
}

func TestTooWide(t *testing.T) {
	long := strings.Repeat("word ", 25)
	tests := []struct {
		name, file, text string
		want             []int
	}{
		{"comment", "a.go", "package a\n\n// " + long + "\nvar x int", []int{3}},
		{"comment in a function", "a.go", "package a\n\nfunc f() {\n\t// " + long + "\n}", []int{4}},
		{"code in a comment", "a.go", "package a\n\n//\t" + long + "\nvar x int", nil},
		{"directive", "a.go", "package a\n\n//go:embed " + long + "\nvar x int", nil},
		{"comment behind code", "a.go", "package a\n\nvar x int // " + long, nil},
		{"C in a comment", "a.go", "package a\n\n// " + long + "\nimport \"C\"", nil},
		{"comment in a string", "a.go", "package a\n\nvar x = `\n// " + long + "`", nil},
		{"address", "a.go", "package a\n\n// https://" + strings.Repeat("x", 120) + "\nvar x int", nil},
		{"prose", "a.md", "# A\n\nshort\n" + long, []int{4}},
		{"list", "a.md", "- " + long, []int{1}},
		{"table", "a.md", "| " + long + "|", nil},
		{"code", "a.md", "```\n" + long + "\n```\n\n    " + long, nil},
		{"page", "a.md", "<!-- " + long + " -->", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tooWide(t, tt.file, tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("lines %v, want %v", got, tt.want)
			}
		})
	}
}

// tooWide returns the numbers of the lines of prose in a file that should be wrapped.
func tooWide(t *testing.T, name, text string) []int {
	t.Helper()
	if filepath.Ext(name) == ".md" {
		return wideMarkdown(text)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := append(strings.Split(text, "\n"), "")
	var wide []int
	for _, group := range file.Comments {
		if strings.HasPrefix(lines[set.Position(group.End()).Line], `import "C"`) {
			continue
		}
		for _, c := range group.List {
			if n := set.Position(c.Pos()).Line; isProse(c, lines[n-1]) && isWide(lines[n-1]) {
				wide = append(wide, n)
			}
		}
	}
	return wide
}

// isProse reports whether a comment has its own line and is text: neither code nor a directive.
func isProse(c *ast.Comment, line string) bool {
	return strings.HasPrefix(c.Text, "// ") && strings.HasPrefix(strings.TrimSpace(line), "//")
}

func wideMarkdown(text string) []int {
	var wide []int
	fenced := false
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced && !strings.HasPrefix(line, "    ") && !strings.ContainsAny(line[:1], "|<#[!") && isWide(line) {
			wide = append(wide, n)
		}
	}
	return wide
}

// isWide reports whether a line is too long and can be broken, because it has several words.
func isWide(line string) bool {
	line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), "\r\n")
	words := strings.TrimLeft(line, " /->*")
	return utf8.RuneCountInString(line) > proseWidth && strings.Contains(words, " ")
}

// tracked lists the files that git knows.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", sourceRoot(t), "ls-files", "-z", "--"}, patterns...)...).Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
}
