package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/tests/cluster"
)

// TestStaleRanks: variables of ranks in the user's shell, or of a step of several tasks around
// submit, are not for the run.
func TestStaleRanks(t *testing.T) {
	t.Parallel()
	const whoami = "%%\nworld, err := distributed.Init()\nif err != nil {\n\tlog.Fatal(err)\n}\ndefer world.Close()\nfmt.Println(world.Rank(), \"of\", world.Size())"
	for name, stale := range map[string][]string{
		"torchrun": {"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1"}, "Open MPI": {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=1", "PMIX_NAMESPACE=prterun-1"},
		"MPICH": {"PMI_RANK=1", "PMI_SIZE=4"}, "srun": {"SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=4"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, stale...)
			wantAll(t, u.mustSubmit(t, "--local", u.write(t, "whoami.ipynb", "import \"gonbatch/distributed\"", whoami)), "0 of 1")
		})
	}
}

// TestLocalInsideAJob checks that submit --local also runs locally inside a SLURM job, such as from
// a Jupyter server on a node: mpirun must not start a step of that job.
func TestLocalInsideAJob(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	for _, mpi := range []string{"mpirun.openmpi", "mpirun.mpich"} {
		t.Run(mpi, func(t *testing.T) {
			t.Parallel()
			real, err := exec.LookPath(mpi)
			if err != nil {
				machine.Lacks(t, fmt.Sprintf("%v: make test installs it", err))
			}
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "mpirun"), []byte("#!/bin/sh\nexec "+real+" \"$@\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			u := newUser(t, c.Env()...)
			name := u.write(t, "whoami.ipynb", "import \"gonbatch/distributed\"", "%%\nworld, err := distributed.Init()\nif err != nil {\n\tlog.Fatal(err)\n}\ndefer world.Close()\nfmt.Println(world.Rank(), \"of\", world.Size())")
			submit, err := submitBinary()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("timeout", "120", "srun", "-n1", "-c1", "env", "PATH="+bin+":"+os.Getenv("PATH"), submit, "--local", "--tasks", "2", name)
			cmd.Dir, cmd.Env = u.folder, slices.Concat(os.Environ(), ranktest.Loopback(), u.env)
			out, err := bounded.CombinedOutput(cmd)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wantAll(t, string(out), "0 of 2")
			wantAll(t, read(t, u.run(t).RankLog(1)), "1 of 2")
		})
	}
}
