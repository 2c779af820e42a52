package export

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
)

// runCells exports a notebook and runs its cells in order, with a run directory. It returns what
// each printed.
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
		out, err := cmd.CombinedOutput()
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

// TestKeep: %keep means in a job what it means in the kernel: a later main begins with the values
// with which an earlier one ended.
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
	if len(outputs) != 1 || !strings.Contains(outputs[0], "%keep f: f is a func") {
		t.Errorf("%q", outputs)
	}
	if _, err := FromNotebook(cells("%keep a.b\n%%\nf()"), Options{SourceDir: sourceDir(t)}); err == nil || !strings.Contains(err.Error(), "%keep a.b: not the name of a variable") {
		t.Errorf("error %v", err)
	}
}

// TestLastValue: the expression that a main ends in is printed; one by itself is for looking at,
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
