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

// TestSLURMContract runs the schedulers' contract tests on a real SLURM.
func TestSLURMContract(t *testing.T) {
	t.Parallel()
	// A rank on n1 that fails at once does so before SLURM has started the one on n2.
	c := cluster.Start(t, cluster.Nodes(2), cluster.Prolog("#!/bin/bash\n[ \"$SLURMD_NODENAME\" = n1 ] || sleep 1"))
	command, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	schedulertest.Run(t, command, slices.Concat(os.Environ(), c.Env()), func(t *testing.T, shell submit.Shell) schedulertest.Fixture {
		return schedulertest.Fixture{Scheduler: slurm.New(shell), Root: t.TempDir(), Spec: submit.JobSpec{Nodes: 2, TasksPerNode: 1, MPI: "none"}}
	})
}
