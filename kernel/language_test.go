package kernel_test

import (
	"strings"
	"testing"
)

// TestLanguage: cells that GoNB alone would die of, or read in another way than a job.
func TestLanguage(t *testing.T) {
	tests := []struct{ name, code, status, text string }{
		{"a kept value", "var alive = 1\n%keep alive\n%%\nalive = 7", "ok", ""},
		{"two mains", "%%\nfmt.Println(1)\n%main\nfmt.Println(2)", "error", "line 3: line 1 already begins the cell's main"},
		{"exec and main", "func f() {}\n%exec f\n%%\nfmt.Println(2)", "error", "line 3: line 2 already begins"},
		{"two exec", "%exec f\n%exec f", "error", "line 2: line 1 already begins"},
		{"main in a string", "%%\ns := `\n%%\n`\nfmt.Println(s)", "error", "line 3: inside a string"},
		{"a command in a string", "%%\ns := `a\n!echo ran\n%time\npackage x\nb`\nfmt.Printf(\"%q\\n\", s)", "ok", "\"a\\nb\"\n"},
		{"its note", "%%\n/*\n!echo ran\n*/", "ok", "line 3: GoNB runs a line that begins with !, also inside a comment: indent the line\nran\n"},
		{"GoNB lives", "alive", "ok", "7"},
	}
	var codes []string
	for _, tt := range tests {
		codes = append(codes, tt.code)
	}
	for i, end := range runCells(t, codes) {
		if text := end[2] + "\n" + end[3]; end[0] != tests[i].status || !strings.Contains(text, tests[i].text) {
			t.Errorf("%s: %s, %q; want %s, %q", tests[i].name, end[0], text, tests[i].status, tests[i].text)
		}
	}
}
