package gocell

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// kindLetters stand for the kinds of a cell's lines.
const kindLetters = "gcjpmb"

func TestParse(t *testing.T) {
	tests := []struct{ name, source, kinds, calls string }{
		{name: "Go", source: "x := 1\n\n// %d", kinds: "ggg"},
		{name: "main", source: "var x int\n%% -n 1\nx++", kinds: "gcg", calls: "2-2 %% [-n 1]"},
		{name: "joined lines", source: "!a \\\n%% \\\n b\nx", kinds: "cjjg", calls: "1-3 ! [%% b]"},
		{name: "joined at the end", source: "%env A \\", kinds: "c", calls: "1-1 %env [A]"},
		{name: "hidden", source: "//gonb:%env A b\n//gonb:x", kinds: "cg", calls: "1-1 %env [A b]"},
		{name: "tabs and spaces", source: "% \tkeep\tx\n!\tls\n %time", kinds: "ccg", calls: "1-1 %keep [x]|2-2 ! []"},
		{name: "marks only", source: "%\n!\n% \n! \t\n!\\\n", kinds: "ggmmmm"},
		{name: "in a raw string", source: "var s = `\n%d\n!x\n`", kinds: "gccg", calls: "2-2 %d []|3-3 ! []"},
		{name: "in a comment", source: "/*\n%%\n*/", kinds: "gcg", calls: "2-2 %% []"},
		{name: "Windows", source: "%cd a\r\nx\r\n", kinds: "cgg", calls: "1-1 %cd [a]"},
		{name: "package", source: "package main // x\n package x\npackages := 1", kinds: "pgp"},
		{name: "in the module", source: "!*go get x", kinds: "c", calls: "1-1 !* [get x]"},
		{name: "bash", source: "%%bash\n%time\n!ls", kinds: "cbb"},
		{name: "hidden script", source: "//gonb:%%script\tcat\nx", kinds: "cb"},
		{name: "bash is not first", source: "\n%%bash", kinds: "gc", calls: "2-2 %%bash []"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Parse(tt.source)
			var kinds, calls strings.Builder
			for _, kind := range c.Kinds {
				kinds.WriteByte(kindLetters[kind])
			}
			for i, call := range c.Calls {
				fmt.Fprintf(&calls, "%s%d-%d %s %v", strings.Repeat("|", min(i, 1)), call.Line, call.End, call.Name(), call.Args())
			}
			if kinds.String() != tt.kinds || calls.String() != tt.calls {
				t.Errorf("lines %s, calls %s; want %s, %s", kinds.String(), calls.String(), tt.kinds, tt.calls)
			}
		})
	}
}

func TestFile(t *testing.T) {
	tests := []struct {
		name, source, want string
		main               bool
	}{
		{name: "declarations", source: "package a\n%time\nvar x int", want: "\n\nvar x int\n"},
		{name: "main", source: "var x int\n%%\nx++", want: "var x int\nfunc main() { flag.Parse();\nx++\n}\n", main: true},
		{name: "exec", source: "%exec f -n 1\nfunc f() {}", want: "func main() { flag.Parse(); f() }\nfunc f() {}\n", main: true},
		{name: "two", source: "%main\nx++\n%%", want: "func main() { flag.Parse();\nx++\n\n}\n", main: true},
		{name: "func main", source: "func main() {", want: "func main() {\n", main: true},
		{name: "bash", source: "%%bash\nfunc main() {}", want: "\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Parse(tt.source).File()
			if got := strings.TrimPrefix(f.Text(), Header); got != tt.want || f.HasMain() != tt.main {
				t.Errorf("%q, main %v; want %q, %v", got, f.HasMain(), tt.want, tt.main)
			}
		})
	}
}

func TestCheckCall(t *testing.T) {
	tests := []struct{ source, want string }{
		{"x\n%%bash", "%%bash must be the first line of its cell"},
		{"%kep x", "unknown magic %kep: did you mean %keep?"},
		{"%%bsh", "unknown magic %%bsh: did you mean %%bash or %%sh?"},
		{"%zzz", "unknown magic %zzz: %help lists them"},
		{"%%\u00a0-n 1", "unknown magic %%\u00a0-n: it has an invisible character, U+00A0: delete it, or replace it with a space"},
		{"%exec", "%exec needs the name of the function to run: %exec FUNCTION [ARGUMENTS]"},
	}
	for _, tt := range tests {
		t.Run(tt.source, func(t *testing.T) {
			if err := Parse(tt.source).Calls[0].check(); err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// pieces are the parts of random cells.
var pieces = []string{
	"%%", "%main -n 1", "%exec f", "%env A b", "%keep x, y", "%time", "%%bash", "%nothing", "!ls", "!*go get x@v1.0.0", "//gonb:%time", "%", "!",
	"% \t", " %time", "\\", " \\", "x", "var x = 1", "func f() {", "}", "func main() {}", "`", "/*", "*/", "// %time", "\"%%\"", "package main",
	"packages", "type T struct{}", "\t", "ä", "",
}

// randomCell composes a cell of pieces, most of them one per line.
func randomCell(r *rand.Rand) string {
	var text strings.Builder
	end := []string{"\n", "\n", "\n", "\r\n", ""}
	for range r.IntN(12) {
		text.WriteString(pieces[r.IntN(len(pieces))] + end[r.IntN(len(end))])
	}
	return text.String()
}

func TestRandomCells(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		checkCell(t, randomCell(r))
	}
}

func FuzzParse(f *testing.F) {
	for _, source := range []string{
		"x := 1", "%%bash\nls", "!ls \\\n -l\nvar x = 1", "//gonb:%env A b\npackage main // x", "%\n!\n%%", "%%writefile \"a b\"\n\\",
		"!a \\", "%args \"\\\"\r\nvar y = `\n%`", "package main; x", "%%writefile\\\nx", "%cd\t\"\"",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) { checkCell(t, source) })
}

// checkCell checks that a cell is parsed without loss: its lines joined are the cell, each line has
// one kind, and its Go stays in place.
func checkCell(t *testing.T, source string) {
	t.Helper()
	c := Parse(source)
	if got := strings.Join(c.Lines, "\n"); got != PlainLines(source) || len(c.Kinds) != len(c.Lines) {
		t.Fatalf("%q became %q, %d kinds", source, got, len(c.Kinds))
	}
	if c.Program != nil {
		if len(c.Calls) > 0 || c.FirstGo() >= 0 || c.Program.Line != 1 || !c.Program.Magic().WholeCell {
			t.Fatalf("%q is a whole cell's magic, and more: %+v", source, c)
		}
		return
	}
	last := 0
	for _, call := range c.Calls {
		if call.Line <= last || call.End < call.Line || call.End > len(c.Lines) || call.Text == "" || call.Mark != '!' && call.Mark != '%' {
			t.Fatalf("%q: call %+v after line %d", source, call, last)
		}
		for line := call.Line; line <= call.End; line++ {
			if want := [...]Kind{CallLine, JoinedLine}[min(line-call.Line, 1)]; c.Kinds[line-1] != want {
				t.Fatalf("%q: line %d is of kind %d, want %d", source, line, c.Kinds[line-1], want)
			}
		}
		last = call.End
	}
	f := c.File()
	if !strings.HasPrefix(f.Text(), Header) || len(f.Lines) != len(c.Lines) {
		t.Fatalf("%q: %d lines of Go for %d", source, len(f.Lines), len(c.Lines))
	}
	for i, line := range f.Lines {
		if c.Kinds[i] == GoLine && line != c.Lines[i] {
			t.Fatalf("%q: line %d is %q in the file", source, i+1, line)
		}
	}
	again := f
	if again.SetText(f.Text()); again.Text() != f.Text() {
		t.Fatalf("%q: the file's text %q became %q", source, f.Text(), again.Text())
	}
}
