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
		{"constants on a line", "const A, B = iota, iota + 10\n%%\nfmt.Println(A, B)", "ok", "0 10\n"},
		{"repeated constants", "const (\n\tC, D = iota, iota * 10\n\tE, F\n)\n%%\nfmt.Println(C, D, E, F)", "ok", "0 0 1 10\n"},
		{"a blank first", "const (\n\t_  = iota\n\tKB = 1 << (10 * iota)\n)\nconst (\n\t_ = iota\n\tone\n\t_\n\tthree\n)", "ok", ""},
		{"after another", "%%\nfmt.Println(KB, one, three)", "ok", "1024 1 3\n"},
		{"a value of a blank", "var _ = func() int { fmt.Print(\"blank \"); return 0 }()\n%%\nfmt.Println(\"once\")", "ok", "\nblank once\n"},
		{"a flag of a blank", "var _ = flag.Int(\"n\", 3, \"times\")\nfunc two() (int, int) { return 1, 2 }\nvar _, s = two()\n%%\nfmt.Println(s)", "ok", "\nblank 2\n"},
		{"after it", "%%\nfmt.Println(s + 1)", "ok", "\nblank 3\n"},
		{"a mistake in a blank", "var _ = nosuch", "error", "undefined: nosuch"},
		{"tests and a main", "func TestA(t *testing.T) {}\n%test\n%%\nfmt.Println(\"lost\")", "ok", "line 3: the cell runs its tests"},
		{"GoNB lives", "alive", "ok", "blank result text/plain: 7"},
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
