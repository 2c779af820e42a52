package arch

import (
	"cmp"
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

// commentMarks maps the endings of files that are not Go to the mark of a comment in them. The
// cells of notebooks are left out: each of their paragraphs is one line.
var commentMarks = map[string]string{
	".c": "// ", ".h": "// ", ".py": "# ", ".sh": "# ", ".tmpl": "# ", ".yaml": "# ", ".yml": "# ", "Dockerfile": "# ", "Makefile": "# ",
}

// TestProseWidth finds comments and Markdown prose that are not wrapped.
func TestProseWidth(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	patterns := []string{"*.go", "*.md", ":!bench/results"} // A benchmark writes those.
	for ending := range commentMarks {
		patterns = append(patterns, "*"+ending)
	}
	for _, name := range tracked(t, patterns...) {
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
		{"comment in C", "a.c", "int x;\n  // " + long, []int{2}},
		{"C behind code", "a.h", "int x;  // " + long, nil},
		{"comment in a script", "a.sh", "# " + long + "\necho " + long, []int{1}},
		{"comment in a template", "a.sh.tmpl", "{{if .X}}\n  # " + long + "\n{{end}}", []int{2}},
		{"directive in a template", "a.tmpl", "#SBATCH " + long, nil},
		{"code in a script's comment", "a.py", "#   " + long, nil},
		{"comment in a Makefile", "a/Makefile", "# " + long, []int{1}},
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
	if mark := commentMarks[cmp.Or(filepath.Ext(name), filepath.Base(name))]; mark != "" {
		return wideComments(text, mark)
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

// wideComments finds comments on lines of their own. Spaces at the beginning mark code or a table.
func wideComments(text, mark string) []int {
	var wide []int
	n := 0
	for line := range strings.Lines(text) {
		n++
		comment, found := strings.CutPrefix(strings.TrimSpace(line), mark)
		if found && !strings.HasPrefix(comment, " ") && isWide(line) {
			wide = append(wide, n)
		}
	}
	return wide
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
	words := strings.TrimLeft(line, " /->*#")
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
