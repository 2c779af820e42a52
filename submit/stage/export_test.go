package stage

import (
	"testing"

	"gonbatch/internal/rundir"
)

// TestHowToRun: the command that export prints runs a cell as the kernel does.
func TestHowToRun(t *testing.T) {
	tests := []struct {
		cell rundir.Cell
		want string
	}{
		{rundir.Cell{Name: "train"}, "cd 'my mod' && go run ./train"},
		{rundir.Cell{Name: "train", Args: []string{"-n", "a b"}, Env: map[string]string{"B": "x y", "A": ""}}, "cd 'my mod' && A='' B='x y' go run ./train -n 'a b'"},
		{rundir.Cell{Name: "train", BuildFlags: []string{"-race"}}, "cd 'my mod' && go run -race ./train"},
		{rundir.Cell{Name: "cell-2", Test: true, Args: []string{"-test.v", "-test.run=^TestX$"}}, "cd 'my mod' && go test ./cell-2 -test.v '-test.run=^TestX$'"},
		{rundir.Cell{Name: "shell-3", Shell: true, Once: true, Env: map[string]string{"A": "1"}}, "A=1 bash 'my mod/shell-3.sh'"},
	}
	for _, tt := range tests {
		if got := howToRun("my mod", tt.cell); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
