package export

import (
	"errors"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/nbcell"
)

func TestMistakes(t *testing.T) {
	tests := []struct {
		name  string
		cells []string
		line  int
		want  string
	}{
		{"unknown magic", []string{"%%\n", "x := 1\n%exce f"}, 2, "n.ipynb, cell 2, line 2: unknown magic %exce: did you mean %exec?\n\t%exce f"},
		{"magic of the kernel", []string{"%resul"}, 1, "n.ipynb, cell 1, line 1: unknown magic %resul: did you mean %result?\n\t%resul"},
		{"another one", []string{"%kep x"}, 1, "n.ipynb, cell 1, line 1: unknown magic %kep: did you mean %keep?\n\t%kep x"},
		{"far magic", []string{"%matplotlib inline"}, 1, "n.ipynb, cell 1, line 1: unknown magic %matplotlib: %help lists them\n\t%matplotlib inline"},
		{"late cell magic", []string{"var x = 1\n%%bash"}, 2, "n.ipynb, cell 1, line 2: %%bash must be the first line of its cell\n\t%%bash"},
		{"syntax", []string{"var a = 1\n\nfunc f( {\n}\n%%"}, 3, "n.ipynb, cell 1, line 3: does not parse as Go: expected ')', found '{'\n\tfunc f( {"},
		{"a statement", []string{"var a = 1\n\na++"}, 3, "n.ipynb, cell 1, line 3: does not parse as Go: expected declaration, found a; statements need a main: put a line %% above them\n\ta++"},
		{"a loop", []string{"for {\n}"}, 1, "n.ipynb, cell 1, line 1: does not parse as Go: expected declaration, found 'for'; statements need a main: put a line %% above them\n\tfor {"},
		{"another kernel's cell", []string{"#@title Install Go\n%%"}, 1, "n.ipynb, cell 1, line 1: does not parse as Go: illegal character U+0023 '#'; comments begin with //; if the cell is for another kernel, as in Colab, tag it notebook-only\n\t#@title Install Go"},
		{"an import in main", []string{"%%\nimport \"fmt\""}, 2, "n.ipynb, cell 1, line 2: does not parse as Go: expected statement, found 'import'; imports stand above the line %%\n\timport \"fmt\""},
		{"a brace too many", []string{"func f() {\n}}"}, 2, "n.ipynb, cell 1, line 2: does not parse as Go: expected declaration, found '}'\n\t}}"},
		{"unclosed main", []string{"%%\nif true {"}, 2, "n.ipynb, cell 1, line 2: does not parse as Go: expected '}', found 'EOF'\n\tif true {"},
		{"two mains", []string{"func main() {}\n%exec f"}, 2, "n.ipynb, cell 1, line 2: the cell has two main functions; split it into two cells\n\t%exec f"},
		{"func main and a call", []string{"func main() {}\nf()"}, 2, "n.ipynb, cell 1, line 2: the cell has a main function above this line; move the line into it, or into another cell\n\tf()"},
		{"two openings", []string{"%%\nf()\n%main"}, 3, "n.ipynb, cell 1, line 3: line 1 already begins the cell's main; split the cell into two\n\t%main"},
		{"main in a string", []string{"%%\ns := `a\n%% b\n`"}, 3, "n.ipynb, cell 1, line 3: inside a string, GoNB takes a line that begins with %% for a magic: indent the line, or write the string in double quotes, with \\n between its lines\n\t%% b"},
		{"exec of nothing", []string{"%exec"}, 1, "n.ipynb, cell 1, line 1: %exec needs the name of the function to run: %exec FUNCTION [ARGUMENTS]\n\t%exec"},
		{"env without value", []string{"%env A"}, 1, "n.ipynb, cell 1, line 1: %env takes a name and a value: %env NAME VALUE; quote a value that has spaces\n\t%env A"},
		{"cd to two", []string{"%cd a b"}, 1, "n.ipynb, cell 1, line 1: %cd takes one folder, not 2; quote a name that has spaces\n\t%cd a b"},
		{"input by a person", []string{"%with_inputs\n!read x"}, 1, "n.ipynb, cell 1, line 1: %with_inputs waits for typed input, which a job does not have; pipe the input into the command, or tag the cell notebook-only\n\t%with_inputs"},
		{"bash with arguments", []string{"%%bash -e\nls"}, 1, "n.ipynb, cell 1, line 1: %%bash takes no arguments; write %%script bash -e\n\t%%bash -e"},
		{"script of nothing", []string{"%%script\nls"}, 1, "n.ipynb, cell 1, line 1: %%script needs the command that gets the cell: %%script COMMAND [ARGUMENTS]\n\t%%script"},
		{"capture to nothing", []string{"%capture a b\n%%"}, 1, "n.ipynb, cell 1, line 1: %capture takes one file: %capture [-a] FILE; quote a name that has spaces\n\t%capture a b"},
		{"two files", []string{"%%writefile a b\nx"}, 1, "n.ipynb, cell 1, line 1: %%writefile takes one file: %%writefile [-a] FILE; quote a name that has spaces\n\t%%writefile a b"},
		{"widgets", []string{"import \"github.com/janpfeifer/gonb/gonbui/widgets\"", "%%\nwidgets.Button(\"go\").Done()"}, 2, "n.ipynb, cell 2, line 2: widgets.Button waits for the notebook's front end, and a job has none; tag the cells that use it notebook-only\n\twidgets.Button(\"go\").Done()"},
		{"reading the page", []string{"import \"github.com/janpfeifer/gonb/gonbui/dom\"\nfunc page() string {\n\treturn dom.GetInnerHtml(\"x\")\n}", "%%\nprintln(page())"}, 3,
			"n.ipynb, cell 1, line 3: dom.GetInnerHtml waits for the notebook's front end, and a job has none; tag the cells that use it notebook-only\n\treturn dom.GetInnerHtml(\"x\")"},
		{"a value from the browser", []string{"import ui \"github.com/janpfeifer/gonb/gonbui/comms\"", "%%\nprintln(ui.ReadValue[int](\"/x\"))"}, 2,
			"n.ipynb, cell 2, line 2: ui.ReadValue waits for the notebook's front end, and a job has none; tag the cells that use it notebook-only\n\tprintln(ui.ReadValue[int](\"/x\"))"},
		{"input", []string{"import \"github.com/janpfeifer/gonb/gonbui\"", "%%\ngonbui.RequestInput(\"name\", false)"}, 2,
			"n.ipynb, cell 2, line 2: gonbui.RequestInput waits for the notebook's front end, and a job has none; tag the cells that use it notebook-only\n\tgonbui.RequestInput(\"name\", false)"},
		{"NUL in a command", []string{"!echo \x00"}, 1, "n.ipynb, cell 1, line 1: the shell command has a NUL byte; remove it\n\t!echo \x00"},
		{"keep without names", []string{"%keep -d"}, 1, "n.ipynb, cell 1, line 1: %keep -d needs the names of variables: %keep -d x, y\n\t%keep -d"},
		{"reset of what", []string{"%reset all"}, 1, "n.ipynb, cell 1, line 1: %reset takes nothing or \"go.mod\"\n\t%reset all"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := FromNotebook(cells(tt.cells...), Options{SourceDir: sourceDir(t)})
			var mistake *nbcell.Error
			if !errors.As(err, &mistake) {
				t.Fatalf("got %v, want a *nbcell.Error", err)
			}
			if mistake.Line != tt.line || mistake.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", mistake, tt.want)
			}
		})
	}
}

func TestNoMain(t *testing.T) {
	skipped := cells("%%\nf()")
	skipped.Cells[0].Tags = []string{"skip-execution"}
	tests := []struct {
		name string
		nb   *nbformat.Notebook
		want string
	}{
		{"declarations only", cells("var x = 1", "%%"), "n.ipynb: no main cell: start the cell to run with a line %%, or give it a func main"},
		{"all skipped", skipped, "n.ipynb: no main cell is left without the cells tagged skip-execution or notebook-only; pick one of those with --cell"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := FromNotebook(tt.nb, Options{SourceDir: sourceDir(t)}); err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestPick(t *testing.T) {
	tests := []struct {
		name  string
		picks []string
		want  []string
		err   string
	}{
		{"all", nil, []string{"Eval", "eval-2", "cell-7"}, ""},
		{"tag", []string{"eval"}, []string{"eval-2"}, ""},
		{"id", []string{"c7"}, []string{"cell-7"}, ""},
		{"number", []string{"4"}, []string{"Eval"}, ""},
		{"name", []string{"eval-2", "cell-7"}, []string{"eval-2", "cell-7"}, ""},
		{"unknown", []string{"evil"}, nil, "--cell evil: tags.ipynb has no cell with that tag, id, number or name; did you mean Eval?\nthe notebook's cells are Eval, eval-2, cell-7"},
		{"no main", []string{"3"}, nil, "--cell 3: tags.ipynb, cell 3 (id c3) is not a main cell: it has no %%, %main, %exec or func main\nthe notebook's cells are Eval, eval-2, cell-7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(read(t, "tags"), Options{SourceDir: sourceDir(t), Cells: tt.picks})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got  %v\nwant %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, m.CellNames()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPickPutsSkippedBack(t *testing.T) {
	nb := cells("%%\nprintln(1)", "%%\nprintln(2)")
	nb.Cells[1].Tags = []string{"skip-execution"}
	m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t), Cells: []string{"2"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Cells) != 1 || m.Cells[0].Number != 2 {
		t.Errorf("cells %+v, want that of cell 2", m.Cells)
	}
}

// TestModuleCommands: a job runs the !* lines that change modules again and warns about the others.
func TestModuleCommands(t *testing.T) {
	tests := []struct{ name, line, command, warning string }{
		{"get", "!*go get example.com/m@v1.2.3", "go get example.com/m@v1.2.3", ""},
		{"edit", "!*go mod edit -replace=example.com/m=$(pwd)", "go mod edit -replace=example.com/m=$(pwd)", ""},
		{"workspace", "!*rm -f go.work && go work init && go work use . ${HOME}/m", "rm -f go.work && go work init && go work use . ${HOME}/m", ""},
		{"tidy", "!*go mod tidy", "go mod tidy", ""},
		{"lines", "!*go get example.com/m@v1.2.3 \\\n && echo done", "go get example.com/m@v1.2.3   && echo done", ""},
		{"silent", "!*go get example.com/m 2>&1 >/dev/null", "go get example.com/m 2>&1 >/dev/null", ""},
		{"with another command", "!*go mod tidy && cat go.mod", "go mod tidy && cat go.mod", `without "cat go.mod": !*go mod tidy && cat go.mod`},
		{"to a file", "!*go get example.com/m > log", "go get example.com/m > log", `without ">log"`},
		{"what depends on another command", "!*go mod edit -replace example.com/m=$(cat place)", "", "not run on the cluster"},
		{"another go command", "!*go install example.com/m@v1.0.0", "", "not run on the cluster"},
		{"no shell command", "!*go get 'example.com", "", "not run on the cluster"},
		{"in the kernel's folder", "!go get example.com/m@v1.2.3", "", ""},
		{"another command in the module's folder", "!*ls -l", "", "not run on the cluster, which doesn't have the kernel's temporary folder (write ! instead of !* if the command doesn't need that folder): !*ls -l"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells("%env A b", tt.line, "%%\nprintln(1)"), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for _, c := range m.Commands {
				got = c.Text
				if c.Number != 2 || c.Line != 1 || c.Env["A"] != "b" || c.Dir == "" {
					t.Errorf("%+v, want the environment and the place of cell 2", c)
				}
			}
			if got != tt.command {
				t.Errorf("command %q, want %q", got, tt.command)
			}
			warned := ""
			for _, w := range m.Warnings {
				warned += w.String()
			}
			if tt.warning == "" && warned != "" || !strings.Contains(warned, tt.warning) {
				t.Errorf("warnings %q, want %q", warned, tt.warning)
			}
		})
	}
}

// TestResultValues: a job doesn't have what %result declares, and a warning says which cells to
// tag.
func TestResultValues(t *testing.T) {
	tests := []struct{ name, line, warning string }{
		{"shown only", "%result 7", ""},
		{"as a value", "%result 7 as run", "run is a value of the notebook only: tag the cells that use it notebook-only"},
		{"the last one", "%result as run", "run is a value of the notebook only"},
		{"no value", "%result as", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells(tt.line, "%%\nprintln(1)"), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			warned := ""
			for _, w := range m.Warnings {
				warned += w.String()
			}
			if (tt.warning == "") != (warned == "") || !strings.Contains(warned, tt.warning) {
				t.Errorf("warnings %q, want %q", warned, tt.warning)
			}
		})
	}
}

// TestLeftOut: a job warns about what it leaves out, in the words of gocell's table.
func TestLeftOut(t *testing.T) {
	tests := []struct{ name, cell, warning string }{
		{"a cell that is a job", "%%submit --nodes 2\npanic(1)", "line 1: %%submit submits its cell as a separate job"},
		{"capture of nothing", "%capture a.txt\n!ls", "line 1: the cell has no program whose output could be captured: no file is written"},
		{"a command in the kernel's folder", "!*ls", "line 1: the shell command is not run on the cluster, which doesn't have the kernel's temporary folder (write ! instead of !* if the command doesn't need that folder): !*ls"},
		{"a server", "!python3 -m http.server 8123 > /dev/null 2>&1 &", "line 1: what this leaves running in the background ends with it in a job: if a program needs it, start it there (os/exec)"},
		{"a server in a cell", "%%bash\nif true; then\n  serve &\nfi", "line 1: what this leaves running in the background ends with it in a job: if a program needs it, start it there (os/exec)"},
		{"a server that is ended", "!serve & S=$!; sleep 1; curl -s localhost; kill $S", ""},
		{"two at once", "!a & b && c >&2 & wait", ""},
		{"for a person", "%who\n%timeit f()\n% \tjobs\n//gonb:%help", ""},
		{"a package clause", "package main // main", ""},
		{"a line that begins alike", "packages := 3", "line 1: GoNB drops this line, since it begins with \"package\": indent it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells(tt.cell, "%%\nprintln(1)"), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			warned := ""
			for _, w := range m.Warnings {
				warned += w.String()
			}
			if (warned == "") != (tt.warning == "") || !strings.HasSuffix(warned, tt.warning) {
				t.Errorf("warnings %q, want %q", warned, tt.warning)
			}
		})
	}
}

func TestDeterministic(t *testing.T) {
	opt := Options{SourceDir: sourceDir(t)}
	first, err := FromNotebook(read(t, "comments"), opt)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := FromNotebook(read(t, "comments"), opt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(describe(first), describe(again)); diff != "" {
			t.Fatalf("two exports differ:\n%s", diff)
		}
	}
}

func TestWrite(t *testing.T) {
	m, err := FromNotebook(read(t, "redefine"), Options{SourceDir: sourceDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out [1]")
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "mine", "main.go")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err = FromNotebook(read(t, "redefine"), Options{SourceDir: sourceDir(t), Cells: []string{"after"}}); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := fs.Glob(os.DirFS(dir), "*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"after/main.go", "mine/main.go"}, got); diff != "" {
		t.Errorf("programs after a second export (-want +got):\n%s", diff)
	}
	if left, _ := fs.Glob(os.DirFS(filepath.Dir(dir)), ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWriteErrors(t *testing.T) {
	m := &Module{Notebook: "n.ipynb", Files: map[string][]byte{"go.mod": []byte("x")}}
	err := m.Write("/dev/null/out")
	if err == nil || !strings.HasPrefix(err.Error(), "export n.ipynb: ") {
		t.Errorf("got %v", err)
	}
}

func TestSourceErrors(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte("module other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"no folder": "/no/such", "another module": other} {
		t.Run(name, func(t *testing.T) {
			_, err := FromNotebook(cells("%%\nf()"), Options{SourceDir: dir})
			if err == nil || !strings.Contains(err.Error(), "gonbatch's") || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want the folder %s in it", err, dir)
			}
		})
	}
}

// TestGonbExamples exports the example notebooks that come with GoNB.
func TestGonbExamples(t *testing.T) {
	out, err := bounded.Output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/janpfeifer/gonb"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "examples", "tests")
	for name, cells := range map[string]int{"hello": 4, "functions": 1, "init": 1, "vartuple": 2, "gonbui": 3} {
		t.Run(name, func(t *testing.T) {
			nb, err := nbformat.Read(filepath.Join(dir, name+".ipynb"))
			if err != nil {
				t.Fatal(err)
			}
			m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			checkFormatted(t, m)
			if len(m.Programs()) != cells {
				t.Errorf("cells %q, want %d", m.CellNames(), cells)
			}
		})
	}
}

func TestMissingStdlib(t *testing.T) {
	tests := []struct {
		name, code string
		want       []string
	}{
		{"one of its name", "strings.ToUpper(`a`)", []string{"strings"}},
		{"math/rand", "rand.Intn(3)", []string{"math/rand"}},
		{"math/rand/v2", "rand.IntN(3)", []string{"math/rand/v2"}},
		{"crypto/rand", "rand.Text()", []string{"crypto/rand"}},
		{"text/template", "template.New(``)", []string{"text/template"}},
		{"html/template", "template.HTML(``)", []string{"html/template"}},
		{"a variable of the name", "var os struct{ Args int }; _ = os.Args", nil},
		{"no package", "unknown.Do()", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells("func main() {\n"+tt.code+"\n}"), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, m.Imports); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzCell(f *testing.F) {
	for _, name := range []string{"comments", "tuple", "iota", "magics", "methods"} {
		for _, cell := range read(f, name).Cells {
			f.Add(cell.Source)
		}
	}
	f.Add("var a, b = func() (int, int) {\n\treturn `\n%`,\n(2)}()\n%%\nx := []int{1,\n2}; _ = x")
	f.Fuzz(func(t *testing.T, source string) {
		m, err := FromNotebook(cells(source, "%%\nprintln(1)"), Options{SourceDir: sourceDir(t)})
		if err != nil {
			var mistake *nbcell.Error
			if !errors.As(err, &mistake) {
				return // go.mod, which a notebook may break.
			}
			if strings.Contains(err.Error(), "please report") || strings.Contains(err.Error(), "do not fit together") {
				t.Errorf("%v", err)
			}
			return
		}
		checkLines(t, m)
	})
}

// TestLines checks the positions of every golden notebook's programs.
func TestLines(t *testing.T) {
	for _, name := range []string{"redefine", "methods", "iota", "tuple", "inits", "magics", "tags", "imports", "comments", "panics", "broken"} {
		t.Run(name, func(t *testing.T) {
			m, err := FromNotebook(read(t, name), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			if n := checkLines(t, m); n == 0 {
				t.Error("no identifier was checked")
			}
		})
	}
}

// checkLines checks that every identifier at the beginning of a program's line is in the cell and
// line that its position names, and returns the number of these identifiers. (gofmt may join lines;
// then the first one's number counts.)
func checkLines(t testing.TB, m *Module) (checked int) {
	t.Helper()
	for _, program := range m.Cells {
		data := m.Files[program.Name+"/main.go"]
		fset := token.NewFileSet()
		file := fset.AddFile("main.go", -1, len(data))
		var s scanner.Scanner
		s.Init(file, data, nil, 0)
		physical := 0
		for pos, tok, lit := s.Scan(); tok != token.EOF; pos, tok, lit = s.Scan() {
			if tok == token.SEMICOLON && lit == "\n" {
				continue
			}
			at := fset.Position(pos)
			cell, ok := m.Sources[at.Filename]
			line := file.PositionFor(pos, false).Line
			first := line != physical
			physical = line + strings.Count(lit, "\n")
			if !ok || !first || tok != token.IDENT || lit == "_" || strings.HasPrefix(lit, "gonbatch__") || lit == "init" || lit == "main" || lit == "flag" || lit == "Parse" {
				continue
			}
			checked++
			lines := strings.Split(strings.ReplaceAll(cell.Source, "\r\n", "\n"), "\n")
			// The name after %exec may be in a continuation of its line.
			if at.Line > len(lines) || !strings.Contains(lines[at.Line-1], lit) && !strings.Contains(lines[at.Line-1], "%") {
				t.Errorf("%q is said to be in %s line %d:\n%s\n%s", lit, at.Filename, at.Line, cell.Source, data)
			}
		}
	}
	return checked
}

// TestOrderOfTests: tests run in GoNB's order, by name.
func TestOrderOfTests(t *testing.T) {
	m, err := FromNotebook(cells("%test\nfunc TestB(t *testing.T) {}\nfunc TestA(t *testing.T) {}", "%test\nfunc TestAB(t *testing.T) {}"), Options{SourceDir: sourceDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	source := string(m.Files[m.Cells[1].Source()])
	a, ab, b := strings.Index(source, "func TestA("), strings.Index(source, "func TestAB("), strings.Index(source, "func TestB(")
	if a < 0 || a > ab || ab > b {
		t.Errorf("TestA, TestAB and TestB at %d, %d, %d:\n%s", a, ab, b, source)
	}
}
