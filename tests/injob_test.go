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
