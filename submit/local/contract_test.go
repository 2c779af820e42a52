package local_test

import (
	"testing"

	"gonbatch/submit"
	"gonbatch/submit/local"
	"gonbatch/submit/schedulertest"
)

func TestContract(t *testing.T) {
	schedulertest.Run(t, func(t *testing.T, shell submit.Shell) schedulertest.Fixture {
		return schedulertest.Fixture{Scheduler: local.New(shell, nil), Root: t.TempDir(), Spec: submit.JobSpec{Nodes: 1, TasksPerNode: 2}}
	})
}
