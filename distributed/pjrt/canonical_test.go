package pjrt_test

import (
	"testing"

	"gonbatch/distributed/pjrt"
)

// TestCanonical: the names of values don't matter; everything else does.
func TestCanonical(t *testing.T) {
	tests := []struct{ name, program, want string }{
		{"names", "func @main(%x: i32, %metrics_uuid_3b9bf249: i32) {\n  %0 = add %x, %metrics_uuid_3b9bf249\n  return %0\n}", "func @main(%v0: i32, %v1: i32) {\n  %v2 = add %v0, %v1\n  return %v2\n}"},
		{"parts of a value", "%a:2 = f()\n%b = g(%a#1)", "%v0:2 = f()\n%v1 = g(%v0#1)"},
		{"a name in another", "%a = f(%ab, %a.b, %a-b, %$a)", "%v0 = f(%v1, %v2, %v3, %v4)"},
		{"strings", `%a = f() {config = "%a \" %b \\"} %b`, `%v0 = f() {config = "%a \" %b \\"} %v1`},
		{"comments", "// %a \" it's\n%b / %c // %d", "// %a \" it's\n%v0 / %v1 // %d"},
		{"bytecode", "ML\xefR %a", "ML\xefR %a"},
		{"an open string", `%a "%b`, `%v0 "%b`},
		{"the end", "%", "%v0"},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(pjrt.Canonical([]byte(test.program))); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
