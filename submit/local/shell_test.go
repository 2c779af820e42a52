package local

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// addShell stages a shell command as the next cell.
func addShell(t *testing.T, spec *submit.JobSpec, name, script string) {
	t.Helper()
	cell := rundir.Cell{Name: name, Shell: true, Once: true, Args: []string{"own"}, Env: map[string]string{"V": "two  words"}}
	if err := bounded.WriteProgram(spec.RunDir.CellProgram(cell), "#!/bin/bash\n"+script); err != nil {
		t.Fatal(err)
	}
	spec.Cells = append(spec.Cells, cell)
}

// TestShellRunsOnce: a shell command runs once, with its own arguments only, even between programs
// of several ranks.
func TestShellRunsOnce(t *testing.T) {
	for _, tasks := range []int{1, 2} {
		spec := newSpec(t, tasks)
		spec.Args = []string{"-x"}
		addShell(t, &spec, "shell-1", `echo "$GONBATCH_CELL $# $V $(pwd)"`)
		second := newSpec(t, tasks, [2]string{"main", "echo main"})
		spec.Cells = append(spec.Cells, second.Cells...)
		if err := os.Rename(second.RunDir.Program("main"), spec.RunDir.Program("main")); err != nil {
			t.Fatal(err)
		}
		addShell(t, &spec, "shell-2", "cat; echo last >&2")
		var out, errOut bytes.Buffer
		if err := (Runner{Out: &out, Err: &errOut}).Run(t.Context(), staged(t, spec)); err != nil {
			t.Fatalf("%d tasks: %v\n%s", tasks, err, &errOut)
		}
		want := "shell-1 1 two  words " + spec.WorkDir + "\nmain\nlast\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d tasks: %s", tasks, diff)
		}
		if diff := cmp.Diff(want, read(t, spec.RunDir.RankLog(0))); diff != "" {
			t.Errorf("%d tasks: rank 0's log: %s", tasks, diff)
		}
	}
}

func TestShellFails(t *testing.T) {
	spec := newSpec(t, 1)
	addShell(t, &spec, "shell-1", "echo 'gonbatch: n.ipynb, cell 2 (id x), line 3: !false ended with exit code 7' >&2; exit 7")
	addShell(t, &spec, "shell-2", "echo never")
	var out bytes.Buffer
	err := Runner{Out: &out, Err: &out}.Run(t.Context(), staged(t, spec))
	var job *submit.JobError
	if !errors.As(err, &job) || job.Status.ExitCode != 7 || job.Cause != "n.ipynb, cell 2 (id x), line 3: !false ended with exit code 7" {
		t.Errorf("error %v, want exit code 7 and the cell", err)
	}
	if strings.Contains(out.String(), "never") {
		t.Errorf("the command behind the failed one ran:\n%s", &out)
	}
}
