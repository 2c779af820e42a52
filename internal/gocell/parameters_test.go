package gocell

import "testing"

func TestTypedParameters(t *testing.T) {
	earlier := []string{"var a float32 = 1\nvar d = 0.5", "const n = 3\nvar (\n\tlist = []float64{1}\n\tcount = int64(2)\n)", "%env A B\nvar a int32", "var pause = 2 * time.Second\nvar limit time.Duration", "var tick = time.Duration(5)\nconst wait = 90 * time.Second\nvar long = 3*time.Second > time.Minute",
		"var grid [][]float64\nvar named = map[string][]float32{}\nvar free = []any{1}", "not Go", "%%\nx := 1"}
	tests := []struct{ name, code, want string }{
		{name: "declared type", code: "// Parameters\nvar a = 3\n", want: "// Parameters\nvar a int32 = 3\n"},
		{name: "type of a literal", code: "// Parameters\nvar d = 3", want: "// Parameters\nvar d float64 = 3"},
		{name: "const of a literal", code: "// Parameters\nvar n = 4", want: "// Parameters\nconst n = 4"},
		{name: "list", code: "// Parameters\nvar list = []int{1}", want: "// Parameters\nvar list = []float64{1}"},
		{name: "conversion", code: "// Parameters\nvar count = 7", want: "// Parameters\nvar count int64 = 7"},
		{name: "duration", code: "// Parameters\nvar pause = \"500ms\"", want: "// Parameters\nvar pause time.Duration = time.Duration(500000000)"},
		{name: "duration of a declared type", code: "// Parameters\nvar limit = \"1h\"", want: "// Parameters\nvar limit time.Duration = time.Duration(3600000000000)"},
		{name: "duration without a unit", code: "// Parameters\nvar pause = 3", want: "// Parameters\nvar pause time.Duration = \"3 is not a time.Duration: give one such as 90s or 1h30m\""},
		{name: "duration of a conversion", code: "// Parameters\nvar tick = \"2m\"", want: "// Parameters\nvar tick time.Duration = time.Duration(120000000000)"},
		{name: "constant duration", code: "// Parameters\nvar wait = \"2m\"", want: "// Parameters\nconst wait time.Duration = time.Duration(120000000000)"},
		{name: "a comparison of durations", code: "// Parameters\nvar long = true", want: "// Parameters\nvar long = true"},
		{name: "lists in a list", code: "// Parameters\nvar grid = [][]int{[]int{1, 2}, []int{3}}", want: "// Parameters\nvar grid = [][]float64{{1, 2}, {3}}"},
		{name: "lists in a map", code: "// Parameters\nvar named = map[string][]int{\"[]int{\": []int{1}}", want: "// Parameters\nvar named = map[string][]float32{\"[]int{\": {1}}"},
		{name: "lists of anything", code: "// Parameters\nvar free = []any{[]int{1}}", want: "// Parameters\nvar free = []any{[]int{1}}"},
		{name: "not declared", code: "// Parameters\nvar z = 7", want: "// Parameters\nvar z = 7"},
		{name: "another cell", code: "var a = 3", want: "var a = 3"},
		{name: "more than parameters", code: "// Parameters\nvar a = 3\nfunc f() {}", want: "// Parameters\nvar a = 3\nfunc f() {}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := TypedParameters(tt.code, earlier); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
