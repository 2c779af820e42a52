package gocell

import "testing"

func TestCheck(t *testing.T) {
	tests := []struct {
		name, code string
		want       Status
		indent     string
	}{
		{name: "empty", want: Complete},
		{name: "declaration", code: "func f() int { return 1 }", want: Complete},
		{name: "open function", code: "func f() {", want: Incomplete, indent: "\t"},
		{name: "open parameters", code: "func f(a int,", want: Incomplete},
		{name: "indented", code: "func f() {\n\tif true {", want: Incomplete, indent: "\t\t"},
		{name: "not Go", code: "func 1() {}", want: Invalid},
		{name: "main", code: "%%\nfmt.Println(1)", want: Complete},
		{name: "main with arguments", code: "%% -n 1\nx := 1\n_ = x", want: Complete},
		{name: "main by name", code: "%main\nfor {\n}", want: Complete},
		{name: "open loop in main", code: "%%\nfor {", want: Incomplete, indent: "\t"},
		{name: "open call in main", code: "%%\nfmt.Println(", want: Incomplete, indent: "\t"},
		{name: "a brace too many", code: "%%\nif true {\n}\n}", want: Invalid},
		{name: "open raw string", code: "var s = `a\nb", want: Incomplete},
		{name: "open comment", code: "/* a", want: Incomplete},
		{name: "open string", code: "var s = \"a\nvar t = 1", want: Invalid},
		{name: "shell command", code: "!if", want: Complete},
		{name: "joined shell command", code: "!echo \\\n  func {\nvar x int", want: Complete},
		{name: "magics between Go", code: "%env A B\nvar x int\n!ls", want: Complete},
		{name: "bash", code: "%%bash\nif true; then", want: Complete},
		{name: "expression", code: "6*7", want: Complete},
		{name: "expression after declarations", code: "var x = 6\nx * 7", want: Complete},
		{name: "open expression", code: "f(1,", want: Incomplete},
		{name: "statement outside of main", code: "x := 1", want: Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, indent := Check(tt.code); got != tt.want || indent != tt.indent {
				t.Errorf("%s, indent %q; want %s, %q", got, indent, tt.want, tt.indent)
			}
		})
	}
}
