package submit

import "testing"

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
