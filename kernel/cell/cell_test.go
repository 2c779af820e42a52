package cell

import (
	"strings"
	"testing"
)

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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, indent := Check(tt.code); got != tt.want || indent != tt.indent {
				t.Errorf("%s, indent %q; want %s, %q", got, indent, tt.want, tt.indent)
			}
		})
	}
}

func TestPrepare(t *testing.T) {
	tests := []struct {
		name, code, want string
		allow            bool
		err              string
	}{
		{name: "Go stays", code: "%%\nx := 5 % 3\n_ = !true", want: "%%\nx := 5 % 3\n_ = !true"},
		{name: "command", code: "!make all", want: "!/s 1 /bin/bash -c 'make all'"},
		{name: "quotes", code: "!echo 'a b' \"$HOME\"", want: `!/s 1 /bin/bash -c 'echo '"'"'a b'"'"' "$HOME"'`},
		{name: "command in GoNB's folder", code: "var x int\n!*go mod edit", want: "var x int\n!*/s 2 /bin/bash -c 'go mod edit'"},
		{name: "joined lines", code: "! echo a \\\n  b\nvar x int", want: "!/s 1 /bin/bash -c 'echo a    b'\n\nvar x int"},
		{name: "behind a comment", code: "//gonb:!false", want: "!/s 1 /bin/bash -c false"},
		{name: "bash", code: "%%bash\nfalse\n!x", want: "%%script \"/s\" 1 bash\nfalse\n!x"},
		{name: "script", code: "%%script python3 -u\n%x", want: "%%script \"/s\" 1 python3 -u\n%x"},
		{name: "a script without a command is GoNB's to refuse", code: "%%script", want: "%%script"},
		{name: "writefile", code: "%%writefile a\n!x", want: "%%writefile a\n!x"},
		{name: "known magics", code: "%env A B\n%ls\n% \n%", want: "%env A B\n%ls\n% \n%"},
		{name: "may fail", code: "%allow_fail\n!false", want: "\n!/s 2 /bin/bash -c false", allow: true},
		{name: "unknown magic", code: "var x int\n%foo bar", want: "var x int\n%foo bar", err: "line 2: unknown magic %foo"},
		{name: "bash is not first", code: "var x int\n%%bash", want: "var x int\n%%bash", err: "line 2: %%bash must be the first line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Prepare(tt.code, "/s")
			if p.Code != tt.want || p.AllowFail != tt.allow {
				t.Errorf("%q, may fail %v; want %q, %v", p.Code, p.AllowFail, tt.want, tt.allow)
			}
			if (p.Err == nil) != (tt.err == "") || p.Err != nil && !strings.Contains(p.Err.Error(), tt.err) {
				t.Errorf("error %v, want %q", p.Err, tt.err)
			}
		})
	}
}

// FuzzPrepare: whatever a cell has, GoNB gets as many lines, and nothing panics.
func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{"", "%", "!", "! \\", "!\\\n\\\n", "%\\\n!a", "%%bash\n!", "//gonb:%", "%%\n}", "!*", "% \\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code string) {
		p := Prepare(code, "/s")
		if got, want := strings.Count(p.Code, "\n"), strings.Count(code, "\n"); p.Err == nil && got != want {
			t.Errorf("%d lines, want %d: %q", got+1, want+1, p.Code)
		}
		Check(code)
	})
}
