package submit

import (
	"os"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

func TestCause(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a numbered cell", []string{"x", "panic: boom", "", "main.f()", "\tu.ipynb[cell 3]:2 +0x1d"}, "panic: boom (at u.ipynb[cell 3]:2)"},
		{"a cell that isn't in the file", []string{"panic: boom", "\tu.ipynb[cell [7]]:2"}, "panic: boom (at u.ipynb[cell [7]]:2)"},
		{"a name with spaces", []string{"panic: boom", "\tmy own.ipynb[cell 1]:2"}, "panic: boom (at my own.ipynb[cell 1]:2)"},
		{"a notebook in Go format", []string{"panic: boom", "\tu.go[cell 1]:2"}, "panic: boom (at u.go[cell 1]:2)"},
		{"the place is in the message", []string{"panic: u.ipynb[cell 1]:2", "\tu.ipynb[cell 1]:2"}, "panic: u.ipynb[cell 1]:2"},
		{"a command", []string{"gonbatch: u.ipynb, cell 3, line 2: !exit 3 ended with exit code 3"}, "u.ipynb, cell 3, line 2: !exit 3 ended with exit code 3"},
		{"a command of a cell that isn't in the file", []string{"gonbatch: u.ipynb, cell [7], line 2: !exit 3 ended with exit code 3"}, "u.ipynb, cell [7], line 2: !exit 3 ended with exit code 3"},
		{"no failure", []string{"fine"}, ""},
	} {
		if got := cause(tt.lines); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestGoFailure: Go's message is found after a progress bar too, and nowhere else.
func TestGoFailure(t *testing.T) {
	for text, want := range map[string]string{
		"panic: x\n\ngoroutine 1 [running]:":                                     "panic: x",
		"fatal error: all goroutines are asleep - deadlock!":                     "fatal error: all goroutines are asleep - deadlock!",
		"50% panic: open val.csv\n\ngoroutine 1 [running]:":                      "panic: open val.csv",
		"1 of 9 [=>  ]\r2 of 9 [==> ]panic: no\n\ngoroutine 7 gp=0x1 [running]:": "panic: no",
		"the error was: panic: x\nand so on":                                     "",
		"":                                                                       "",
	} {
		if lines := rundir.LastLines(text, 20); len(lines) > 0 && GoFailure(lines) != want || len(lines) == 0 && want != "" {
			t.Errorf("%q: %q, want %q", text, GoFailure(lines), want)
		}
	}
	path := t.TempDir() + "/log"
	bar := strings.Repeat("\rstep 7 of 2000 [===>    ]", 9000) + "panic: open val.csv\n\ngoroutine 1 [running]:\n"
	if err := os.WriteFile(path, []byte("first\n"+bar), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, err := lastLines(path, 0, 20); err != nil || len(lines) != 3 || cause(lines) != "panic: open val.csv" {
		t.Errorf("%q, %v", lines, err)
	}
}
