package cell

import "testing"

// TestCleanEmbed: a text that quotes the cell does not show the calls that Prepare added.
func TestCleanEmbed(t *testing.T) {
	for _, code := range []string{
		"//go:embed a.txt \"b \\\"c\\\" (d)\"\nvar größe string",
		"var (\n//go:embed a\na string; b = f(\"x\", \"y\")\n)",
	} {
		p := Prepare(code, "/s")
		if p.Err != nil || p.Code == code {
			t.Fatalf("%q is prepared as it is: %v", code, p.Err)
		}
		if got := CleanMarks(p.Code); got != code {
			t.Errorf("%q, want %q", got, code)
		}
	}
}
