package gocell

import (
	"strings"
	"testing"
)

// TestDeclarations: a declaration's hash is its text's, without layout, and that of the code that
// its initial value comes from.
func TestDeclarations(t *testing.T) {
	const imports = "package main\n\nimport (\n\t\"example.com/near/a\"\n\tother \"example.com/far/go-b\"\n\t\"example.com/c\"\n)\n\n"
	tests := []struct{ name, text, imports string }{
		{name: "none", text: "var x = 1"},
		{name: "a call", text: "var x = a.New()", imports: "example.com/near/a"},
		{name: "a type only", text: "var x a.Model"},
		{name: "of a group", text: "var (\n\ty = c.X\n\tx = a.New(other.Y) // first\n)", imports: "example.com/far/go-b example.com/near/a"},
		{name: "of one line", text: "var y, x = c.X, a.X", imports: "example.com/near/a"},
		{name: "of a tuple", text: "var x, y = c.Two()", imports: "example.com/c"},
		{name: "a field", text: "var x = f().a.b"},
		{name: "in a function", text: "var x = func() int { return c.X }()", imports: "example.com/c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Declarations(imports + tt.text)["x"]
			if got := strings.Join(d.Imports, " "); got != tt.imports {
				t.Errorf("imports %q, want %q", got, tt.imports)
			}
			if again := Declarations(imports + "// said\n" + strings.ReplaceAll(tt.text, " = ", "="))["x"]; again.Hash(nil) != d.Hash(nil) {
				t.Errorf("hash %s of other layout, want %s", again.Hash(nil), d.Hash(nil))
			}
			plain, one, two := d.Hash(nil), d.Hash([]string{"1"}), d.Hash([]string{"2"})
			if len(plain) != 16 || len(one) != 16 || one == two || one == plain || one[:CodeAt] != plain[:CodeAt] || one[:CodeAt] != two[:CodeAt] {
				t.Errorf("hashes %q, %q, %q", plain, one, two)
			}
			if other := Declarations(imports + "var x = 2")["x"]; other.Hash(nil)[:CodeAt] == plain[:CodeAt] {
				t.Error("another value has the same hash")
			}
		})
	}
}
