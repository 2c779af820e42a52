package cell

import "testing"

// TestConstants: GoNB gets constants that mean the same with each name on a line of its own.
func TestConstants(t *testing.T) {
	tests := []struct{ name, code, want string }{
		{"one name a line", "const (\n\tA = iota\n\tB\n)", "const (\n\tA = iota\n\tB\n)"},
		{"one line", "const A, B = iota, iota + 10", "const A, B = 0, 0 + 10"},
		{"without iota", "const A, B = 1, \"b\"", "const A, B = 1, \"b\""},
		{"repeated", "const (\n\tC, D = iota, iota*10 // c\n\tE, F // d\n\tG = iota\n)", "const (\n\tC, D = 0, 0*10 // c\n\tE, F = 1 , 1 * 10 // d\n\tG = 2\n)"},
		{"with a type", "const (\n\tA, B T = 1 << iota, -iota\n\tC, D\n)", "const (\n\tA, B T = 1 << 0, -0\n\tC, D T = 1 << 1 , - 1\n)"},
		{"a name with iota", "const (\n\tA, B = len(`a\nb`), x.iota + iota\n\tC, D\n)", "const (\n\tA, B = len(`a\nb`), x.iota + 0\n\tC, D = len ( \"a\\nb\" ) , x . iota + 1\n)"},
		{"a struct", "const (\n\tA, B = iota, unsafe.Sizeof(struct {\n\t\ta int32; b byte\n\t}{})\n\tC, D\n)", "const (\n\tA, B = 0, unsafe.Sizeof(struct {\n\t\ta int32; b byte\n\t}{})\n\tC, D = 1 , unsafe . Sizeof ( struct { a int32 ; b byte ; } { } )\n)"},
		{"a blank first", "const (\n\t_ = iota // no\n\tKB = 1 << (10 * iota)\n\tMB\n)", "const (\n\t // no\n\tKB = 1 << (10 * 1)\n\tMB = 1 << ( 10 * 2 )\n)"},
		{"a blank on a line with others", "const ( _ = iota; A; B )", "const (  A = 1; B = 2 )"},
		{"a blank of several lines", "const (\n_ = 1 +\niota\nA\n)", "const (\n\n\nA = 1 + 1\n)"},
		{"a blank in a line", "const (\n_, A = iota, iota\n_, B\n)", "const (\ngonbatch__blank_2d711642_0, A = 0, 0\ngonbatch__blank_2d711642_1, B = 1 , 1\n)"},
		{"an assertion", "const _ = uint(n - 3)", "const _ = uint(n - 3)"},
		{"within main", "%%\nconst a, b = iota, iota\nf(a)", "%%\nconst a, b = iota, iota\nf(a)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Prepare(tt.code, "/s", "x")
			if p.Err != nil || p.Code != tt.want {
				t.Errorf("%q, %v; want %q", p.Code, p.Err, tt.want)
			}
		})
	}
}
