package distributed_test

import (
	"regexp"
	"testing"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
)

// gpuLaunchers start ranks on a machine with four GPUs.
func gpuLaunchers(t *testing.T) []ranktest.Launcher {
	t.Helper()
	return []ranktest.Launcher{ranktest.Torchrun.OnGPUs(t, 4), ranktest.OpenMPI.OnGPUs(t, 4), ranktest.MPICH.OnGPUs(t, 4)}
}

// TestCheckOnGPUs: the ranks of a job find one another by XLA's own means.
func TestCheckOnGPUs(t *testing.T) {
	if ranktest.InRank() {
		if err := distributed.Check(t.Context()); err != nil {
			t.Error(err)
		}
		return
	}
	for i, launcher := range gpuLaunchers(t) {
		t.Run(launcher.Name, func(t *testing.T) {
			n := 2 + i
			out, err := ranktest.Start(t, launcher, n, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			rows := regexp.MustCompile(`(?m)^\d+ +\S.* +1 cuda device, PJRT \d+\.\d+ `).FindAllString(out, -1)
			if len(rows) != n {
				t.Errorf("%d ranks, want %d:\n%s", len(rows), n, out)
			}
		})
	}
}
