package kernel_test

import (
	"strings"
	"testing"
)

// TestMessages: the error of a failed cell says what to do.
func TestMessages(t *testing.T) {
	tests := []struct{ code, want string }{
		{"fmt.Println(1)", "line 1: expected declaration, found fmt; statements need a main: put a line %% above them"},
		{"x := 5", "put a line %% above"},
		{"for {\n}", "put a line %% above"},
		{"  %%  \nfmt.Println(1)", "line 1: expected declaration, found '%'; a magic stands at the beginning of its line"},
		{"%%\nimport \"fmt\"\nfmt.Println(1)", "line 2: expected statement, found 'import'"},
		{"%%\nimport \"fmt\"\nfmt.Println(1)", "imports stand above the line %%"},
		{"%%\nfunc helper() {}\nhelper()", "line 2: expected '(', found helper (and 4 more errors); functions stand above the line %%"},
		{"!", "line 1: expected declaration, found '!'; a % or a ! alone does nothing"},
		{"%%\n\u00a0fmt.Println(1)", "line 2: illegal character U+00A0 (and 1 more errors); it is invisible"},
		{"\ufeff%%\nfmt.Println(1)", ""},
		{"%test -run X\nfunc TestY(t *testing.T) {}", "line 1: %test -run: the tests know it as -test.run"},
		{"%goflags -nosuch\n%goflags", ""},
		{"%%\nfmt.Println(3)", "cell [12] line 1 set these flags: %goflags -nosuch; correct them"},
		{"%goflags \"\"", ""},
		{"%keep nosuch", "%keep nosuch: there is no such package-level variable"},
		{"%%\nfmt.Println(3)", ""},
		{"%%python\nprint(1)", "%%script python3"},
		{"%pip install torch", "!pip"},
		{"%env A=5", ""},
		{"%%\nif os.Getenv(\"A\") != \"5\" {\n\tpanic(os.Getenv(\"A\"))\n}", ""},
		{"%%\nos.Exit(3)", "cell [21]: exit status 3"},
		{"type L[T any] struct{ v []T }\nfunc (l *L[T]) Add(x T) { l.v = append(l.v, x) }", ""},
		{"func (l *L[E]) Add(x E) { l.v = append(l.v, x, x) }", "cell [22] line 2: method L.Add already declared; " +
			"if its receiver had other names for the type parameters before, use these, or forget the earlier method by %rm TYPE[OLD NAMES]~METHOD: %ls lists it"},
		{"%rm L[T]~Add", ""},
		{"func (l *L[E]) Add(x E) { l.v = append(l.v, x, x) }", ""},
		{"func half(n int) int { return n / 2 }", ""},
		{"func half(n float64) float64 { return n / 2 }\nvar h int = half(3)", "line 2: cannot use half(3)"},
	}
	var codes []string
	for _, tt := range tests {
		codes = append(codes, tt.code)
	}
	for i, end := range runCells(t, codes) {
		if (end[0] == "ok") != (tests[i].want == "") || !strings.Contains(end[2], tests[i].want) {
			t.Errorf("cell %d, %q: %q, want %q", i+1, codes[i], end, tests[i].want)
		}
	}
}
