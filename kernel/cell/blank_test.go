package cell

import "testing"

// TestBlanks: a variable without a name has one that depends on its cell and, if that has no id, on
// its text. Texts that quote it show the blank.
func TestBlanks(t *testing.T) {
	tests := []struct{ name, code, id, want string }{
		{"a value", "var _ = f()", "x", "var gonbatch__blank_2d711642_0 = f()"},
		{"two", "var _ = f()\nvar (\n\t_, a = 1, 2\n)", "x", "var gonbatch__blank_2d711642_0 = f()\nvar (\n\tgonbatch__blank_2d711642_1, a = 1, 2\n)"},
		{"without an id", "var _ = f()", "", "var gonbatch__blank_1cb5bbfd_0 = f()"},
		{"a tuple", "var a, _ = f()", "x", "var a, gonbatch__blank_2d711642_0 = f()"},
		{"without a value", "var _ T", "x", "var _ T"},
		{"a type", "type _ struct{}", "x", "type _ struct{}"},
		{"within main", "%%\nvar _ = f()", "x", "%%\nvar _ = f()"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Prepare(tt.code, "/s", tt.id)
			if p.Err != nil || p.Code != tt.want {
				t.Errorf("%q, %v; want %q", p.Code, p.Err, tt.want)
			}
			if got := CleanMarks(p.Code); got != tt.code {
				t.Errorf("it is quoted as %q", got)
			}
		})
	}
	if got, want := CleanMarks("var gonbatch__blank_2d711642_0 = nothing\n                                 ^"), "var _ = nothing\n        ^"; got != want {
		t.Errorf("with its caret it is quoted as %q, want %q", got, want)
	}
}
