package cell

import (
	"strings"
	"testing"
)

func TestDeclare(t *testing.T) {
	const imported, declared = `r "gonbatch/submit/result"`, `var run = r.At("x")`
	tests := []struct{ name, code, want, err string }{
		{name: "alone", code: "@", want: `import r "gonbatch/submit/result"; var run = r.At("x")`},
		{name: "before Go", code: "@\nrun.Metrics()", want: "import r \"gonbatch/submit/result\"; var run = r.At(\"x\")\nrun.Metrics()"},
		{name: "after an import", code: "import \"fmt\"\n@", want: "import r \"gonbatch/submit/result\"; import \"fmt\"\nvar run = r.At(\"x\")"},
		{name: "after a comment", code: "// see\n@", want: "import r \"gonbatch/submit/result\"; // see\nvar run = r.At(\"x\")"},
		{name: "after magics", code: "%env A \\\n B\n!ls\n\n@\n%%\nx()", want: "%env A \\\n B\n!ls\n\nimport r \"gonbatch/submit/result\"; var run = r.At(\"x\")\n%%\nx()"},
		{name: "after a package clause", code: "package main\n@", want: "package main\nimport r \"gonbatch/submit/result\"; var run = r.At(\"x\")"},
		{name: "within main", code: "var x int\n%%\n@", err: "line 3: it declares a variable, which can't be done within main: put it before line 2, %%"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line := strings.Count(tt.code[:strings.Index(tt.code, "@")], "\n") + 1
			got, err := Declare(strings.Replace(tt.code, "@", "", 1), line, imported, declared)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("%v, %q, want %q", err, got, tt.want)
			}
		})
	}
	if _, err := Declare("x", 2, imported, declared); err == nil {
		t.Error("a line behind the cell was taken")
	}
}
