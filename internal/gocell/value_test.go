package gocell

import (
	"go/parser"
	"go/token"
	"testing"
)

func TestLastValue(t *testing.T) {
	const head = "package main\n"
	main := func(body string) string { return head + "func main() {\n" + body + "\n}\n" }
	tests := []struct {
		name, source string
		want, callee string
		bare         bool
	}{
		{name: "product", source: main("6*7"), want: "6*7"},
		{name: "after statements", source: main("x := 6\nx*7 // the answer"), want: "x*7"},
		{name: "several lines", source: main("Point{\n1,\n2,\n}"), want: "Point{\n1,\n2,\n}"},
		{name: "call", source: main("model.Loss(x)"), want: "model.Loss(x)", callee: "model.Loss"},
		{name: "call in brackets", source: main("(f(1))"), want: "(f(1))", callee: "f"},
		{name: "call of a call", source: main("f(1)(2)"), want: "f(1)(2)", callee: "f(1)"},
		{name: "literal with a result", source: main("func() int { return 1 }()"), want: "func() int { return 1 }()", callee: "func"},
		{name: "received", source: main("<-done"), want: "<-done"},
		{name: "main is followed by a declaration", source: main("1") + "var x int\n", want: "1"},
		{name: "non-ASCII text before", source: main("s := \"ä€\"\ns"), want: "s"},
		{name: "literal without a result", source: main("func() {}()")},
		{name: "semicolon", source: main("x;")},
		{name: "semicolon and comment", source: main("f() ; // quiet")},
		{name: "printing", source: main("fmt.Println(1)")},
		{name: "panic", source: main("panic(1)")},
		{name: "assignment", source: main("x := 1")},
		{name: "loop", source: main("for {\n1\n}")},
		{name: "empty main", source: main("")},
		{name: "no main", source: head + "var x int\n"},
		{name: "method called main", source: head + "func (t T) main() { 1 }\n"},
		{name: "syntax error in main", source: main("1 +")},

		{name: "bare", source: head + "x\n", want: "x", bare: true},
		{name: "bare number", source: head + "\n\n6*7\n", want: "6*7", bare: true},
		{name: "bare after declarations", source: head + "import \"fmt\"\nvar x = T{1}\nfunc f() {\n1\n}\nlen(x) // how many\n", want: "len(x)", callee: "len", bare: true},
		{name: "bare in brackets", source: head + "(x)\n", want: "(x)", bare: true},
		{name: "bare literal", source: head + "[]int{1,\n2}\n", want: "[]int{1,\n2}", bare: true},
		{name: "bare with a semicolon", source: head + "x;\n"},
		{name: "two bare expressions", source: head + "x\ny\n"},
		{name: "statement outside of main", source: head + "x := 1\n"},
		{name: "declaration after the expression", source: head + "x\nvar y int\n"},
		{name: "broken declaration before", source: head + "var = 1\nx\n"},
		{name: "empty", source: head},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := LastValue(tt.source)
			if ok != (tt.want != "") {
				t.Fatalf("found %v: %+v, want %q", ok, got, tt.want)
			}
			if ok && (tt.source[got.Start:got.End] != tt.want || got.Callee != tt.callee || got.Call != (tt.callee != "") || got.Bare != tt.bare) {
				t.Errorf("%q %+v, want %q, callee %q, bare %v", tt.source[got.Start:got.End], got, tt.want, tt.callee, tt.bare)
			}
		})
	}
}

// FuzzLastValue: the result is an expression, whatever the source.
func FuzzLastValue(f *testing.F) {
	for _, seed := range []string{"", "x", "package main\nx", "package main\nfunc main() {\nf(1)\n}", "package main\n`", "package main\n(", "package main\n/*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		got, ok := LastValue(source)
		if !ok {
			return
		}
		if _, err := parser.ParseExprFrom(token.NewFileSet(), "", source[got.Start:got.End], 0); err != nil {
			t.Errorf("%q of %q: %v", source[got.Start:got.End], source, err)
		}
	})
}
