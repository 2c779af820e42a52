package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonbatch/submit"
	"gonbatch/submit/local"
	"gonbatch/submit/schedulertest"
)

func TestContract(t *testing.T) {
	command := filepath.Join(t.TempDir(), "submit")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", command, "gonbatch/cmd/submit").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	schedulertest.Run(t, command, os.Environ(), func(t *testing.T, shell submit.Shell) schedulertest.Fixture {
		return schedulertest.Fixture{Scheduler: local.New(shell, nil), Root: t.TempDir(), Spec: submit.JobSpec{Nodes: 1, TasksPerNode: 2}}
	})
}
