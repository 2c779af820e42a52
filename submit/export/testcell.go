package export

import (
	"slices"
	"strings"

	"gonbatch/submit/export/decl"
	"gonbatch/submit/export/nbcell"
)

// testMain prepares a %test cell: it sets the program's default arguments and returns its main,
// which no test runs.
func (s *session) testMain(cell *nbcell.Cell, decls *decl.Cell) *decl.Decl {
	if len(s.cellArgs) == 0 {
		s.cellArgs = testArgs(decls.Decls)
	}
	if decls.Main != nil {
		return decls.Main
	}
	return decl.NewFunc(cell, "main", "func main() { flag.Parse() }", s.testLine)
}

// testArgs returns GoNB's arguments for a test cell: they run the tests that it declares, or all if
// it declares none.
func testArgs(decls []*decl.Decl) []string {
	args := []string{"-test.v"}
	var names []string
	for _, d := range decls {
		if !d.IsTest() {
			continue
		}
		names = append(names, "^"+d.Key+"$")
		if strings.HasPrefix(d.Key, "Benchmark") && !slices.Contains(args, "-test.bench=.") {
			args = append(args, "-test.bench=.")
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		args = append(args, "-test.run="+strings.Join(names, "|"))
	}
	return args
}
