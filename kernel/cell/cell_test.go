package cell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/gocell"
)

func TestPrepare(t *testing.T) {
	tests := []struct {
		name, code, want string
		allow            bool
		err              string
	}{
		{name: "Go stays", code: "%%\nx := 5 % 3\n_ = !true", want: "%%\nx := 5 % 3\n_ = !true"},
		{name: "command", code: "!make all", want: "!/s 1 /bin/bash -c 'make all'"},
		{name: "quotes", code: "!echo 'a b' \"$HOME\"", want: `!/s 1 /bin/bash -c 'echo '"'"'a b'"'"' "$HOME"'`},
		{name: "command in GoNB's folder", code: "var x int\n!*go mod edit", want: "var x int\n!*/s 2 /bin/bash -c 'go mod edit'"},
		{name: "joined lines", code: "! echo a \\\n  b\nvar x int", want: "!/s 1 /bin/bash -c 'echo a    b'\n\nvar x int"},
		{name: "behind a comment", code: "//gonb:!false", want: "!/s 1 /bin/bash -c false"},
		{name: "bash", code: "%%bash\nfalse\n!x", want: "%%script \"/s\" 0 bash\nfalse\n!x"},
		{name: "script", code: "%%script python3 -u\n%x", want: "%%script \"/s\" 0 python3 -u\n%x"},
		{name: "a script without a command is GoNB's to refuse", code: "%%script", want: "%%script"},
		{name: "writefile", code: "%%writefile a\n!x", want: "%%writefile a\n!x"},
		{name: "writefile with other letters", code: "%%writefile voilà.txt\nx", want: "%%writefile voilà.txt\nx", err: "%%writefile voilà.txt: GoNB, which runs this magic, handles only ASCII letters, not 'à'"},
		{name: "a folder with other letters", code: "var x int\n%cd données", want: "var x int\n%cd données", err: "line 2: %cd données: GoNB"},
		{name: "arguments with other letters", code: "%env A Zoë\n%% -n Zoë", want: "%env A Zoë\n%% -n Zoë"},
		{name: "known magics", code: "%env A B\n%ls\n% \n%", want: "%env A B\n%ls\n\n%"},
		{name: "may fail", code: "%allow_fail\n!false", want: "\n!/s 2 /bin/bash -c false", allow: true},
		{name: "exec", code: "%exec f -n 1\nfunc f() {}", want: "%exec f -n 1\nfunc f() {}"},
		{name: "exec alone", code: "%time\n%exec f -n \"a b\"", want: "\nfunc main() { os.Args = append(os.Args[:1], []string{\"-n\", \"a b\"}...); flag.Parse(); f(); }"},
		{name: "unknown magic", code: "var x int\n%nothing bar", want: "var x int\n%nothing bar", err: "line 2: unknown magic %nothing: %help lists them"},
		{name: "keep alone", code: "!x\n%keep x\n%keep", want: "!/s 1 /bin/bash -c x\n\nfunc main() { flag.Parse(); }"},
		{name: "keep no longer", code: "%keep -d x", want: ""},
		{name: "keep beside Go", code: "%keep x\nvar x int", want: "\nvar x int"},
		{name: "keep beside a program", code: "%keep x\n%devices", want: "\nfunc main() { flag.Parse(); gonbatch__devices() }"},
		{name: "a variable of one letter", code: "%env A=5", want: "%env A 5"},
		{name: "quoted", code: "%env \"A=5 6\"", want: "%env A \"5 6\""},
		{name: "its value is quoted", code: "%env A=\"5=6\"", want: "%env A \"5=6\""},
		{name: "without a value", code: "%env A=", want: "%env A \"\""},
		{name: "a variable and nothing", code: "%env A", want: "", err: "line 1: %env takes a name and a value: %env NAME VALUE"},
		{name: "a flag of go test", code: "%test -run X", want: "%test -run X", err: "line 1: %test -run: the tests know it as -test.run"},
		{name: "flags of tests", code: "%test -test.run X -epochs 3", want: "%test -test.run X -epochs 3"},
		{name: "Python", code: "%%python\nprint(1)", want: "%%python\nprint(1)", err: "%%script python3"},
		{name: "pip", code: "%pip install torch", want: "%pip install torch", err: "!pip"},
		{name: "misspelled keep", code: "%kep x", want: "%kep x", err: "unknown magic %kep: did you mean %keep?"},
		{name: "misspelled result", code: "%resul", want: "%resul", err: "did you mean %result?"},
		{name: "misspelled cell magic", code: "%%bsh\nls", want: "%%bsh\nls", err: "did you mean %%bash or %%sh?"},
		{name: "misspelled in two ways", code: "%tim", want: "%tim", err: "did you mean %time?"},
		{name: "one letter", code: "%x", want: "%x", err: "%help lists them"},
		{name: "own magic", code: "%submit --nodes 2 \\\n  --time 10\nvar x int", want: "\n\nvar x int"},
		{name: "own cell magic", code: "%%submit -f\nx\ny", want: "\n\n"},
		{name: "own cell magic is not first", code: "x\n%%submit", want: "x\n%%submit", err: "line 2: %%submit must be the first line"},
		{name: "timeit", code: "%timeit f(1)", want: "func main() { flag.Parse(); gonbatch__timeit(func() { f(1) }) }"},
		{name: "timeit of a value", code: "%timeit a + b", want: "func main() { flag.Parse(); gonbatch__timeit(func() { gonbatch__sink = a + b }) }"},
		{name: "timeit of a statement", code: "%timeit x := 1", want: "", err: "line 1: %timeit x := 1: want a Go expression"},
		{name: "who", code: "%who", want: "%ls"},
		{name: "time and ranks", code: "%time\n%distributed 2\nvar x int", want: "\n\nvar x int"},
		{name: "time of what", code: "%time f()", want: "", err: "line of its own"},
		{name: "who is what", code: "%who x", want: "", err: "line 1: %who x: it takes no arguments"},
		{name: "devices of what", code: "%devices gpu", want: "", err: "line 1: %devices gpu: it takes no arguments"},
		{name: "devices beside a main", code: "%devices\n%%\nx()", want: "\n%%\nx()", err: "line 1: %devices is a program of its own"},
		{name: "no ranks", code: "%distributed", want: "", err: "line 1: %distributed : want the number of ranks, 1 to 64"},
		{name: "too many ranks", code: "%distributed 65", want: "", err: "1 to 64"},
		{name: "less than one rank", code: "%distributed 0", want: "", err: "1 to 64"},
		{name: "ranks of what", code: "%distributed x", want: "", err: "want the number of ranks"},
		{name: "embed", code: "%ls\nvar (\n\t// It.\n\t//go:embed data/*\n\tfiles embed.FS\n)", want: "%ls\nvar (\n\t// It.\n\t//go:embed data/*\n\tfiles embed.FS\n)", err: "line 4: //go:embed can't take files"},
		{name: "two mains", code: "%%\nf()\n%main", want: "%%\nf()\n%main", err: "line 3: line 1 already begins the cell's main; split the cell into two"},
		{name: "two mains in two lines", code: "%%\n%%", want: "%%\n%%", err: "line 2: line 1 already begins"},
		{name: "exec and main", code: "//gonb:%exec f\n%%\nx()", want: "%exec f\n%%\nx()", err: "line 2: line 1 already begins"},
		{name: "two exec", code: "func f() {}\n%exec f\n%exec f", want: "func f() {}\n%exec f\n%exec f", err: "line 3: line 2 already begins"},
		{name: "func main and exec", code: "func main() {}\n%exec f", want: "func main() {}\n%exec f", err: "line 2: the cell has two main functions"},
		{name: "func main and a value", code: "func main() {}\nvar x = 1\nx", want: "func main() {}\nvar x = 1\nx", err: "line 3: the cell has a main function above this line; move the line into it, or into another cell"},
		{name: "two timeits", code: "%timeit f()\n%timeit g()", want: bareOpen + "gonbatch__timeit(func() { f() }) }\n" + bareOpen + "gonbatch__timeit(func() { g() }) }", err: "line 2: the cell has two main functions"},
		{name: "main in a string", code: "%%\ns := `a\n%% b\n`", want: "%%\ns := `a\n%% b\n`", err: "line 3: inside a string, GoNB takes a line that begins with %% for a magic: indent the line, or write the string in double quotes"},
		{name: "main in a comment", code: "/*\n%%\n*/\n%%\nf()", want: "/*\n%%\n*/\n%%\nf()", err: "line 2: inside a comment, GoNB takes a line that begins with %% for a magic: indent the line"},
		{name: "a verb in a string", code: "var s = `\n%d items`", want: "var s = `\n%d items`", err: "line 2: inside a string, GoNB takes a line that begins with %d for a magic"},
		{name: "lines that GoNB drops from strings", code: "var s = `\n%time\n!echo \\\n  a\n% \npackage a\nb`\n%time", want: "var s = `\npackage\n!/s 3 /bin/bash -c 'echo    a'\npackage\npackage\npackage a\nb`\n"},
		{name: "bash is not first", code: "var x int\n%%bash", want: "var x int\n%%bash", err: "line 2: %%bash must be the first line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Prepare(tt.code, "/s", "")
			if p.Code != tt.want || p.AllowFail != tt.allow {
				t.Errorf("%q, may fail %v; want %q, %v", p.Code, p.AllowFail, tt.want, tt.allow)
			}
			if (p.Err == nil) != (tt.err == "") || p.Err != nil && !strings.Contains(p.Err.Error(), tt.err) {
				t.Errorf("error %v, want %q", p.Err, tt.err)
			}
		})
	}
}

func TestMagics(t *testing.T) {
	tests := []struct{ name, code, want string }{
		{name: "one", code: "%jobs", want: "[{Line:1 Name:jobs Args: Body:}]"},
		{name: "several", code: "var x int\n%submit --nodes 2 \\\n  -p a=\"b c\"\n//gonb:%wait  7 ", want: "[{Line:2 Name:submit Args:--nodes 2    -p a=\"b c\" Body:} {Line:4 Name:wait Args:7 Body:}]"},
		{name: "the whole cell", code: "%%submit --nodes 2\nx := 1\n%wait", want: "[{Line:1 Name:%submit Args:--nodes 2 Body:x := 1\n%wait}]"},
		{name: "in a script", code: "%%bash\n%wait", want: "[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprintf("%+v", Prepare(tt.code, "/s", "").Magics); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	tests := []struct{ name, code, want, err string }{
		{name: "names", code: "%keep x, y z", want: "[{[x y z] false}]"},
		{name: "several", code: "var x int\n%keep x\n%keep -d y\n%keep", want: "[{[x] false} {[y] true} {[] false}]"},
		{name: "no name", code: "%keep x.y", want: "[]", err: "line 1: %keep x.y: not the name of a variable"},
		{name: "blank", code: "%keep _", want: "[]", err: "not the name"},
		{name: "drop nothing", code: "\n%keep -d", want: "[]", err: "line 2: %keep -d needs"},
		{name: "another magic", code: "%keeper", want: "[]", err: "unknown magic"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Prepare(tt.code, "/s", "")
			if got := fmt.Sprint(p.Keep); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if (p.Err == nil) != (tt.err == "") || p.Err != nil && !strings.Contains(p.Err.Error(), tt.err) {
				t.Errorf("error %v, want %q", p.Err, tt.err)
			}
			if tt.err == "" && strings.Contains(p.Code, "keep") {
				t.Errorf("the magic is left: %q", p.Code)
			}
		})
	}
}

func TestHasMain(t *testing.T) {
	tests := map[string]bool{
		"": false, "var x int": false, "%%bash\n%%": false, "x": true, "var x int\n%% -n 1": true, "func main() {}": true, "%exec f": true,
		"func main() { flag.Parse(); f() }": true, "!ls": false,
	}
	for code, want := range tests {
		if got := HasMain(code); got != want {
			t.Errorf("%q: %v, want %v", code, got, want)
		}
	}
}

func TestCleanMarks(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{name: "the caret moves", text: "x := 1\ngonbatch__show(f(y))/*gonbatch__*/\n                 ^\n}", want: "x := 1\nf(y)\n  ^\n}"},
		{name: "bare", text: "func main() { flag.Parse(); gonbatch__show(y)/*gonbatch__*/ }\n                                           ^", want: "y\n^"},
		{name: "no marks", text: "f(y)\n  ^", want: "f(y)\n  ^"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := CleanMarks(tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestShowValue(t *testing.T) {
	tests := []struct{ name, code, want, callee string }{
		{name: "expression", code: "6*7 // c", want: "func main() { flag.Parse(); gonbatch__show(6*7)/*gonbatch__*/ } // c"},
		{name: "in main", code: "var x int\n%%\nx++\n  x", want: "var x int\n%%\nx++\n  gonbatch__show(x)/*gonbatch__*/"},
		{name: "call", code: "%% -n 1\nm.f(1)", want: "%% -n 1\ngonbatch__show(m.f(1))/*gonbatch__*/", callee: "m.f"},
		{name: "func main", code: "func main() {\nx\n}", want: "func main() {\ngonbatch__show(x)/*gonbatch__*/\n}"},
		{name: "several lines", code: "%%\nT{\n1,\n}", want: "%%\ngonbatch__show(T{\n1,\n})/*gonbatch__*/"},
		{name: "magics between", code: "%env A B\n!echo \\\n  x\nvar y int\ny", want: "%env A B\n!echo \\\n  x\nvar y int\nfunc main() { flag.Parse(); gonbatch__show(y)/*gonbatch__*/ }"},
		{name: "hidden magic", code: "//gonb:%%\nx", want: "//gonb:%%\ngonbatch__show(x)/*gonbatch__*/"},
		{name: "call without a value", code: "%%\nvoid()"},
		{name: "bare call without a value", code: "void(1)", want: "func main() { flag.Parse(); void(1) }", callee: "void"},
		{name: "test cell", code: "%test\nx"},
		{name: "bash", code: "%%bash\nx"},
		{name: "empty"},
	}
	void := func(callee string) bool { return callee == "void" }
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, callee, ok := ShowValue(tt.code, void)
			if want := tt.want; !ok && want == "" && got == tt.code {
				return
			}
			if got != tt.want || callee != tt.callee {
				t.Errorf("%q, callee %q; want %q, %q", got, callee, tt.want, tt.callee)
			}
			if clean := CleanMarks(got); clean != tt.code && callee != "void" {
				t.Errorf("without the marks %q, want %q", clean, tt.code)
			}
		})
	}
}

// FuzzPrepare: whatever a cell contains, GoNB gets as many lines, and nothing panics.
func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{"", "%", "!", "! \\", "!\\\n\\\n", "%\\\n!a", "%%bash\n!", "//gonb:%", "%%\n}", "!*", "% \\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code string) {
		p := Prepare(code, "/s", "")
		if got, want := strings.Count(p.Code, "\n"), strings.Count(code, "\n"); p.Err == nil && got != want {
			t.Errorf("%d lines, want %d: %q", got+1, want+1, p.Code)
		}
		gocell.Check(code)
		shown, _, _ := ShowValue(code, func(string) bool { return false })
		if got, want := strings.Count(shown, "\n"), strings.Count(code, "\n"); got != want {
			t.Errorf("%d lines with marks, want %d: %q", got+1, want+1, shown)
		}
	})
}

// TestRewriters: the table and the rewriters have the same magics.
func TestRewriters(t *testing.T) {
	for _, m := range gocell.Magics {
		if _, ok := rewriters[m.Name]; ok != (m.Runner == gocell.Kernel && !m.WholeCell || m.Name == gocell.Env) {
			t.Errorf("%s is run by %s, and has a rewriter: %v", m.Name, m.Runner, ok)
		}
	}
	for _, m := range gocell.Magics {
		if _, ok := programs[m.Name]; ok != (m.WholeCell && m.Runner != gocell.GoNB) {
			t.Errorf("%s is run by %s, and has a function that prepares its cell: %v", m.Name, m.Runner, ok)
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(rewriters)), slices.Collect(maps.Keys(programs))) {
		if gocell.Lookup(name) == nil {
			t.Errorf("%s is not in the table", name)
		}
	}
}
