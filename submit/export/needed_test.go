package export

import (
	"strings"
	"testing"
)

// TestNeeded: each program has what it needs, and each declaration is in the first program after
// it.
func TestNeeded(t *testing.T) {
	tests := []struct {
		name string
		// shared is a cell between two main cells; the test checks the second one's program.
		shared, main string
		has, lacks   []string
	}{
		{"a function that main calls", "func a() { b() }\nfunc b() {}\nfunc c() {}", "a()", []string{"func a()", "func b()"}, []string{"func c()"}},
		{"methods stay with their type", "type T struct{}\nfunc (T) M() { h() }\nfunc h() {}\ntype U struct{}\nfunc (U) M() {}", "var x T; _ = x", []string{"type T", ") M() { h() }", "func h()"}, []string{"U"}},
		{"methods on an alias", "type B = A\ntype A = T\ntype T struct{}\nfunc (b *B) M() {}\ntype P = *T\nfunc (P) N() {}\ntype U = V\ntype V struct{}\nfunc (U) M() {}", "var x T; _ = x", []string{"type B = A", "type A = T", "type T struct", "func (b *B) M()", "func (P) N()"}, []string{"type U", "type V"}},
		{"an alias of no type here", "type D = time.Duration\ntype L = []int", "var x D; _ = x", []string{"type D"}, []string{"type L"}},
		{"a plain variable", "var x = 1\nvar y = []string{\"a\"}\nvar z = map[string]int{\"a\": -1}", "println(y)", []string{"var y"}, []string{"var x", "var z"}},
		{"a variable whose value is computed", "var x = f()\nfunc f() int { return 1 }\nvar y = *p\nvar p *int\nvar c = <-ch\nvar ch chan int\nvar i = list[3]\nvar list []int", "", []string{"var x", "func f()", "var y", "var p", "var c", "var ch", "var i", "var list"}, nil},
		{"init functions", "func init_a() { f() }\nfunc f() {}", "", []string{"func init()", "func f()"}, nil},
		{"blank variables", "var _ fmt.Stringer = T(0)\ntype T int\nfunc (T) String() string { return \"\" }", "", []string{"var _", "type T", "String()"}, nil},
		{"const blocks stay whole", "const (\n\ta = iota\n\tb\n)\nconst c = 1", "println(b)", []string{"a = iota", "\tb"}, []string{"const c"}},
		{"what C calls", "//export cb\nfunc cb() {}", "", []string{"func cb()"}, nil},
		{"a test may be run by its name", "func TestA(t *testing.T) {}\nfunc other() {}", "%test -test.run=A", []string{"TestA", "other()"}, nil},
		{"a dot import may be for anything", "import . \"strings\"\nfunc up() string { return ToUpper(\"a\") }", "", []string{"func up()"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells(tt.shared, "%%\nprintln(1)", "%%\n"+tt.main+"\nprintln(2)"), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			first, second := string(m.Files[m.Cells[0].Source()]), string(m.Files[m.Cells[1].Source()])
			for _, text := range tt.has {
				if !strings.Contains(second, text) {
					t.Errorf("lacks %q:\n%s", text, second)
				}
			}
			for _, text := range tt.lacks {
				if strings.Contains(second, text) || !strings.Contains(first, text) {
					t.Errorf("%q should be in the first program only:\n%s\n%s", text, first, second)
				}
			}
		})
	}
}

// TestScriptOrder: a script has the notebook's order only if that initialises everything in the
// same sequence.
func TestScriptOrder(t *testing.T) {
	for _, tt := range []struct {
		name, cell, want string
	}{
		{"nothing acts", "func b() {}\nvar a = 1", "func b var a"},
		{"one acts", "func b() int { return 1 }\nvar a = b()", "func b var a"},
		{"two act in the order of their names", "func b() int { return 1 }\nvar a = b()\nvar c = b()", "func b var a var c"},
		{"flags in another order", "func b() int { return 1 }\nvar c = flag.Int(\"c\", 1, \"\")\nvar a = flag.Bool(\"a\", true, \"\")", "func b var c var a"},
		{"two act in another order", "func b() int { return 1 }\nvar c = b()\nvar a = b()", "var a var c func b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells(tt.cell, "%%\nprintln(a)\nb()"), Options{SourceDir: sourceDir(t), Script: true})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(m.Script())) {
				if words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" (=\n", r) }); len(words) > 1 && (words[0] == "var" || words[0] == "func" && words[1] != "main") {
					got = append(got, words[0], words[1])
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %s, want %s:\n%s", text, tt.want, m.Script())
			}
		})
	}
}
