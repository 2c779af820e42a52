package slurmtmpl

import (
	"os"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// TestDocs: the script in the documentation is what a user gets.
func TestDocs(t *testing.T) {
	script, err := Render(submit.JobSpec{
		Name: "mnist", Nodes: 2, TasksPerNode: 1, CPUsPerTask: 16, Account: "physics", Partition: "batch", Time: "30:00", MPI: "pmix", MaxRestarts: 10,
		Env: map[string]string{"OMP_PROC_BIND": "true"}, Modules: []string{"OpenMPI/5.0"}, Setup: []string{"ulimit -l unlimited"}, Args: []string{"-epochs", "3"},
		RunDir: rundir.At("/shared/runs/mnist-20261129-101500-4f2a"), WorkDir: "/home/ada/notebooks", Cells: []rundir.Cell{{Name: "train"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const file = "../docs/cluster-setup.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "```bash\n")
	shown, after, found := strings.Cut(rest, "```\n")
	if *update && found {
		if err := os.WriteFile(file, []byte(before+"```bash\n"+string(script)+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != string(script) {
		t.Errorf("%s shows another script than this; go test ./slurmtmpl -update writes it:\n%s", file, script)
	}
}
