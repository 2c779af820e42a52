package build

import (
	"testing"
)

func TestCheckVets(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cells []string
		want  string
	}{
		{"nothing to find", []string{"%%\nfmt.Println(1)"}, ""},
		{"once for two programs", []string{"func show(n int) {\n\tfmt.Printf(\"%s\\n\", n)\n}", "%%\nshow(1)", "%goflags -tags=x\n%%\nshow(2)"},
			"n.ipynb, cell 1, line 2, column 14: fmt.Printf format %s has arg n of wrong type int\n\t\tfmt.Printf(\"%s\\n\", n)\n\t\t            ^"},
		{"flags that go vet lacks", []string{"%goflags --cover -covermode atomic -coverpkg=./...\n%%\nfmt.Printf(\"%d\\n\", \"x\")"},
			"n.ipynb, cell 1, line 3, column 13: fmt.Printf format %d has arg \"x\" of wrong type string\n\tfmt.Printf(\"%d\\n\", \"x\")\n\t            ^"},
		{"tests with coverage", []string{"func half(n int) int { return n / 2 }", "%goflags --cover\n%test\nfunc TestHalf(t *testing.T) { half(2) }", "%%\nprintln(half(2))"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, dir := written(t, cells(tt.cells...))
			problems, err := Check(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, p := range problems {
				got += p.String()
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
