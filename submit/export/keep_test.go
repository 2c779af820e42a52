package export

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
)

// runCells exports a notebook, runs its cells in order with a run directory, and returns their
// outputs.
func runCells(t *testing.T, nb *nbformat.Notebook) []string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	module, err := FromNotebook(nb, Options{SourceDir: root})
	if err != nil {
		t.Fatal(err)
	}
	dir, run := t.TempDir(), t.TempDir()
	if err := module.Write(filepath.Join(dir, "m")); err != nil {
		t.Fatal(err)
	}
	var m rundir.Manifest
	for _, cell := range module.Cells {
		m.Cells = append(m.Cells, rundir.Cell{Name: cell.Name})
	}
	if err := m.Write(rundir.At(run)); err != nil {
		t.Fatal(err)
	}
	var outputs []string
	for _, cell := range module.Cells {
		cmd := exec.Command("go", "run", "./"+cell.Name)
		cmd.Dir, cmd.Env = filepath.Join(dir, "m"), append(os.Environ(), rundir.EnvDir+"="+run, rundir.EnvCell+"="+cell.Name)
		out, err := bounded.CombinedOutput(cmd)
		if err != nil {
			t.Logf("cell %s: %v", cell.Name, err)
		}
		if err := rundir.MarkFinished(rundir.At(run), cell.Name, 1); err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, string(out))
	}
	return outputs
}

// TestKeep: in a job as in the kernel, %keep lets a later main start with the final values of an
// earlier one.
func TestKeep(t *testing.T) {
	outputs := runCells(t, cells(
		"type model struct{ W []int }\nvar m model\nvar n = 1\nfunc init_show() { println(\"init\", n) }\n%keep m, n",
		"%%\nm.W, n = []int{1, 2}, 5\nfmt.Println(\"first\")",
		"func main() {\n\tfmt.Println(m.W, n)\n\tn++\n}",
		"%keep -d m\n%%\nfmt.Println(m.W, n)",
	))
	want := []string{"init 1\nfirst\n", "init 5\n[1 2] 5\n", "init 6\n[] 6\n"}
	if strings.Join(outputs, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", outputs, want)
	}
}

// TestResetKeep: %reset forgets which variables are kept, as in the kernel.
func TestResetKeep(t *testing.T) {
	m, err := FromNotebook(cells("var n = 1\n%keep n", "%reset", "%%\nprintln(2)"), Options{SourceDir: sourceDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	if program := string(m.Files["cell-3/main.go"]); strings.Contains(program, "gonbatch__keep") {
		t.Error(program)
	}
}

// TestKeepMistakes: a variable that cannot be kept ends the program.
func TestKeepMistakes(t *testing.T) {
	outputs := runCells(t, cells("var f = func() {}\n%keep f\n%%\nf()"))
	if len(outputs) != 1 || !strings.Contains(outputs[0], "%keep f at n.ipynb[cell 1]:2: f is a func") {
		t.Errorf("%q", outputs)
	}
	if _, err := FromNotebook(cells("%keep a.b\n%%\nf()"), Options{SourceDir: sourceDir(t)}); err == nil || !strings.Contains(err.Error(), "%keep a.b: not the name of a variable") {
		t.Errorf("error %v", err)
	}
}

// TestKeepEnds: variables are kept however a main ends.
func TestKeepEnds(t *testing.T) {
	outputs := runCells(t, cells(
		"import system \"os\"\nvar n = 1\nfunc check(err error) {\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n%keep n",
		"%%\nn = 2\nos.Exit(0)",
		"%%\nfmt.Println(n)\nn = 3\ncheck(os.ErrNotExist)",
		"%%\nfmt.Println(n)\nn = 4\nlog.Fatalf(\"%d\", 7)",
		"%%\nfmt.Println(n)\nn = 5\ndefer system.Exit(3)",
		"%%\nfmt.Println(n)",
	))
	for i, want := range []string{"", "2\n", "3\n", "4\n", "5\n"} {
		if !strings.HasPrefix(outputs[i], want) {
			t.Errorf("cell %d: %q, want %q", i+2, outputs[i], want)
		}
	}
	if !strings.Contains(outputs[1], "main.check at n.ipynb[cell 1]:5") {
		t.Errorf("log.Fatal does not name its places: %q", outputs[1])
	}
}

// TestKeepUnsaved: a later cell says that an earlier one has not saved its variables.
func TestKeepUnsaved(t *testing.T) {
	outputs := runCells(t, cells(
		"var n = 1\n%keep n",
		"%%\nn = 2",
		"%%\nn = 3\nsyscall.Exit(0)",
		"%%\nfmt.Println(n)",
		"%%\nfmt.Println(n)",
	))
	want := []string{"", "", "%keep n: not saved in cell cell-3, because its program ended before main returned, or while it was saving: its changes are lost\n2\n", "2\n"}
	if strings.Join(outputs, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", outputs, want)
	}
}

// TestKeepRegistered: an init function of the notebook can register the type of a value.
func TestKeepRegistered(t *testing.T) {
	outputs := runCells(t, cells(
		"type square struct{ Side int }\nvar shape any\nfunc init_register() { gob.Register(square{}) }\n%keep shape\n%%\nshape = square{2}",
		"%%\nfmt.Println(shape)",
	))
	if outputs[1] != "{2}\n" {
		t.Errorf("%q", outputs)
	}
}

// TestKeepStarts: a variable whose declaration has changed, or that was removed, starts with its
// initial value.
func TestKeepStarts(t *testing.T) {
	outputs := runCells(t, cells(
		"var a, b, c, d = 1, 1, 1, 1\n%keep a, b, c, d\n%%\na, b, c, d = 5, 5, 5, 5",
		"var b = 2 // edited",
		"%rm c\nvar c = 1\n%keep c",
		"%keep -d d",
		"%keep d\n%%\nfmt.Println(a, b, c, d)\na, b, c, d = 6, 6, 6, 6",
		"var a = // only formatted\n\t1\n%%\nfmt.Println(a, b, c, d)",
		"%reset",
		"var a, d = 1, 1\n%keep a, d\n%%\nfmt.Println(a, d)",
	))
	if got := strings.Join(outputs, "|"); got != "|5 2 1 1\n|6 6 6 6\n|1 1\n" {
		t.Errorf("%q", got)
	}
}

// TestKeepUnknown: an error in a %keep names its line.
func TestKeepUnknown(t *testing.T) {
	outputs := runCells(t, cells("const limit = 2", "// n\n%keep nowhere, limit", "%%\nfmt.Println(limit)"))
	for _, want := range []string{"n.ipynb[cell 2]:2:", "undefined: nowhere", "cannot take address of limit"} {
		if !strings.Contains(outputs[0], want) {
			t.Errorf("%q lacks %q", outputs[0], want)
		}
	}
}

// TestKeepPicked: a picked cell gets a warning about kept variables that skipped cells set.
func TestKeepPicked(t *testing.T) {
	nb := cells("var x, y, z = 1, 1, 1\n%keep x, y, z", "%%\nx = 42", "%%\ny, x = 1, 2", "%%\nfmt.Println(x, y, z)")
	tests := []struct {
		options Options
		want    []string
	}{
		{Options{}, nil},
		{Options{Cells: []string{"2"}}, nil},
		{Options{Cells: []string{"4"}, Kept: true}, nil},
		{Options{Cells: []string{"4"}}, []string{"the kept variables x and y begin with their initial values, because cells 2 and 3, which may change them, do not run: "}},
		{Options{Cells: []string{"2", "4"}}, []string{"the kept variables x and y begin with their initial values, because cell 3, which may change them, does not run: "}},
		{Options{Cells: []string{"3", "4"}}, []string{"the kept variable x begins with its initial value, because cell 2, which may change it, does not run: ", "cell 4, line 1: the kept variable x begins"}},
	}
	for _, tt := range tests {
		tt.options.SourceDir = sourceDir(t)
		m, err := FromNotebook(nb, tt.options)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Warnings) != len(tt.want) {
			t.Errorf("--cell %v: %v, want %v", tt.options.Cells, m.Warnings, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(m.Warnings[i].String(), want) {
				t.Errorf("--cell %v: %v, want %v", tt.options.Cells, m.Warnings[i], want)
			}
		}
	}
}

// TestLastValue: the expression at the end of a main is printed; one without a main is left out,
// unless it is a call.
func TestLastValue(t *testing.T) {
	outputs := runCells(t, cells(
		"var n = 6\nfunc f() int { fmt.Println(\"f\"); return n }\nn * 7",
		"len(\"abc\")",
		"%submit --nodes 2\n%time\n%%\nn * 7 // the answer",
		"f()",
	))
	if got := strings.Join(outputs, "|"); got != "42\n|f\n" {
		t.Errorf("%q, want the value, then the call", got)
	}
}

// TestKeepOtherCode: a kept value belongs to its declaration with the sources and versions of the
// packages that the initial value comes from, but not to those that gonbatch has.
func TestKeepOtherCode(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		for name, text := range map[string]string{"go.mod": "module example.com/near\n", "near.go": text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	declared := regexp.MustCompile(`Declared\{"x": "(\w+)"\}`)
	hash := func(value, far, imports string) string {
		t.Helper()
		own, err := os.ReadFile(filepath.Join(sourceDir(t), "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		mod := string(own) + "\nrequire example.com/near v0.0.0\n\nrequire example.com/far " + far + "\n\nreplace example.com/near => " + dir + "\n"
		mod += "\nrequire gonbatch v0.0.0\n\nreplace gonbatch => " + sourceDir(t) + "\n"
		m, err := FromNotebook(cells(imports+"var x = "+value+"\n%keep x\n%%\nfmt.Println(x)"),
			Options{SourceDir: sourceDir(t), Resolved: Resolved{GoMod: []byte(mod), Imports: map[string]map[string]string{"cell-1": {"near": "example.com/near"}}}})
		if err != nil {
			t.Fatal(err)
		}
		found := declared.FindSubmatch(m.Files["cell-1/main.go"])
		if found == nil {
			t.Fatalf("no declaration in\n%s", m.Files["cell-1/main.go"])
		}
		return string(found[1])
	}
	const near, far = "import \"example.com/near\"\n", "import \"example.com/far\"\n"
	write("package near\n\nconst X = 1\n")
	constant, local, module := hash("1", "v1.0.0", ""), hash("near.X", "v1.0.0", near), hash("far.X", "v1.0.0", far)
	if found := hash("near.X", "v1.0.0", ""); found != local {
		t.Errorf("an import that goimports has found: %s, want %s", found, local)
	}
	write("package near\n\nconst X = 2\n")
	for _, tt := range []struct {
		name, before, after string
		same                bool
	}{
		{"no package", constant, hash("1", "v1.1.0", ""), true},
		{"another source", local, hash("near.X", "v1.0.0", near), false},
		{"the same module", module, hash("far.X", "v1.0.0", far), true},
		{"another version", module, hash("far.X", "v1.1.0", far), false},
	} {
		if tt.before[:8] != tt.after[:8] || (tt.before == tt.after) != tt.same {
			t.Errorf("%s: %s, before %s, want the same: %v", tt.name, tt.after, tt.before, tt.same)
		}
	}
}
