package tests

import (
	"os"
	"slices"
	"testing"

	"gonbatch/submit"
	"gonbatch/submit/schedulertest"
	"gonbatch/submit/slurm"
	"gonbatch/tests/cluster"
)

// TestSLURMContract runs the contract of schedulers on a real SLURM.
func TestSLURMContract(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Nodes(2))
	schedulertest.Run(t, func(t *testing.T, shell submit.Shell) schedulertest.Fixture {
		shell.Environ = slices.Concat(os.Environ(), c.Env())
		shell.Runner = submit.ExecRunner{Env: submit.CleanEnviron(shell.Environ)}
		return schedulertest.Fixture{Scheduler: slurm.New(shell), Root: t.TempDir(), Spec: submit.JobSpec{Nodes: 2, TasksPerNode: 1, MPI: "none"}}
	})
}
