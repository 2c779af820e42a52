package cell

import (
	"strings"
	"testing"
)

// TestCleanEmbed: a message that quotes the cell does not show the calls that Prepare added.
func TestCleanEmbed(t *testing.T) {
	for _, code := range []string{
		"//go:embed a.txt \"b \\\"c\\\" (d)\"\nvar größe string",
		"var (\n//go:embed a\na string; b = f(\"x\", \"y\")\n)",
	} {
		p := Prepare(code, "/s", "")
		if p.Err != nil || p.Code == code {
			t.Fatalf("%q is prepared as it is: %v", code, p.Err)
		}
		if got := CleanMarks(p.Code); got != code {
			t.Errorf("%q, want %q", got, code)
		}
	}
}

// TestEmbedPlaces: a variable gets its files wherever Go gives it some. A //go:embed line that Go
// refuses is a mistake in its cell: GoNB would silently leave the variable empty.
func TestEmbedPlaces(t *testing.T) {
	tests := []struct{ code, want, err string }{
		{code: "//go:embed a\n\n// A text.\nvar x string", want: "//go:embed a\n\n// A text.\nvar x string = gonbatch__embed_x(\"a\")"},
		{code: "var (\n//go:embed a\n\nx []byte; y int)", want: "var (\n//go:embed a\n\nx []byte = gonbatch__embed_x(\"a\"); y int)"},
		{code: "//go:embed a\nvar _ string", want: "//go:embed a\nvar _ string"},
		{code: "!echo 1\n//go:embed a\nvar x, y string", err: "line 2: //go:embed a: it gives files to one variable"},
		{code: "%%\n//go:embed a\nvar x string\nprintln(x)", err: "line 2: //go:embed a: it is above no variable"},
		{code: "//go:embed\nvar x string", err: "line 1: //go:embed: it names no file"},
	}
	for _, tt := range tests {
		p := Prepare(tt.code, "/s", "")
		if tt.err != "" {
			if p.Err == nil || !strings.HasPrefix(p.Err.Error(), tt.err) {
				t.Errorf("%q: got %v, want %s", tt.code, p.Err, tt.err)
			}
			continue
		}
		if p.Err != nil || p.Code != tt.want {
			t.Errorf("%q: got %q, %v, want %q", tt.code, p.Code, p.Err, tt.want)
		}
	}
}
