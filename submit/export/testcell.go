package export

import (
	"go/token"
	"slices"
	"strings"
)

// testMain prepares a %test cell: it sets the program's default arguments and returns its main,
// which no test runs.
func (s *session) testMain(cell *cellInfo, decls *cellDecls) *decl {
	if len(s.cellArgs) == 0 {
		s.cellArgs = testArgs(decls.decls)
	}
	if decls.main != nil {
		return decls.main
	}
	return &decl{key: "main", kind: token.FUNC, cell: cell, chunks: []chunk{{"func main() { flag.Parse() }", s.testLine}}}
}

// testArgs returns GoNB's arguments for a test cell: they run the tests that it declares, or all if
// it declares none.
func testArgs(decls []*decl) []string {
	args := []string{"-test.v"}
	var names []string
	for _, d := range decls {
		if !d.isTest() {
			continue
		}
		names = append(names, "^"+d.key+"$")
		if strings.HasPrefix(d.key, "Benchmark") && !slices.Contains(args, "-test.bench=.") {
			args = append(args, "-test.bench=.")
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		args = append(args, "-test.run="+strings.Join(names, "|"))
	}
	return args
}

// isTest reports whether the declaration is a test or a benchmark.
func (d *decl) isTest() bool {
	named := strings.HasPrefix(d.key, "Benchmark") || strings.HasPrefix(d.key, "Test") && d.key != "TestMain"
	return named && d.kind == token.FUNC && !strings.Contains(d.key, "~")
}
