package stage

import (
	"maps"
	"testing"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

func TestName(t *testing.T) {
	for _, tc := range []struct{ name, notebook, want string }{
		{"notebook's", "a/mnist.ipynb", "mnist"},
		{"newline in the notebook's", "a\nb.ipynb", "a b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (Notebook{File: &nbformat.File{Path: tc.notebook}}).Name(); got != tc.want {
				t.Errorf("name = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStepDir(t *testing.T) {
	for _, tc := range []struct{ name, dir, want string }{
		{"none", "", ""}, {"absolute", "/a", "/a"}, {"home", "~", "/home/ada"}, {"below home", "~/x", "/home/ada/x"},
		{"another's home is not ours", "~bob", "/nb/~bob"}, {"relative", "../x", "/x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := cellDir(tc.dir, "/nb", "/home/ada"); got != tc.want {
				t.Errorf("stepDir(%q) = %q, want %q", tc.dir, got, tc.want)
			}
		})
	}
}

// TestCells: a cell's environment has GoNB's variable for its folder, unless the notebook sets it.
func TestCells(t *testing.T) {
	m := &export.Module{Cells: []rundir.Cell{
		{Name: "a"}, {Name: "b", Dir: "data", Env: map[string]string{"X": "1"}}, {Name: "c", Env: map[string]string{rundir.EnvNotebookDir: "mine"}},
	}}
	want := []map[string]string{
		{rundir.EnvNotebookDir: "/nb"}, {rundir.EnvNotebookDir: "/nb/data", "X": "1"}, {rundir.EnvNotebookDir: "mine"},
	}
	for i, cell := range Cells(m, "/nb", "/home/ada") {
		if !maps.Equal(cell.Env, want[i]) {
			t.Errorf("%s: %v, want %v", cell.Name, cell.Env, want[i])
		}
	}
	if m.Cells[0].Env != nil {
		t.Errorf("the module's cell has changed: %v", m.Cells[0])
	}
}
