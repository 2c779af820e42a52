package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// failingCells train forever; after a second, rank 1 does what -how says.
var failingCells = []string{`import (
	"syscall"

	"gonbatch/distributed"
)

var how = flag.String("how", "", "kill, stop, panic or nothing")

func fail() {
	switch *how {
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "stop":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "panic":
		panic("no more batches")
	}
}`, `%%
world, err := distributed.Init()
if err != nil {
	log.Fatal(err)
}
defer world.Close()
for step, start := int64(1), time.Now(); ; step++ {
	world.Progress(step)
	if err := world.AllReduceSum(make([]float64, 1000)); err != nil {
		log.Fatal(err)
	}
	if world.Rank() == 1 && time.Since(start) > time.Second {
		fail()
	}
}`}

// TestFailingRanks checks, on two nodes, that if a rank dies, falls silent or loses its node, the
// other rank reports why and ends in time, whatever srun does.
func TestFailingRanks(t *testing.T) {
	t.Parallel()
	shared := cluster.Start(t, cluster.Nodes(2)) // Rank 1 is then on n2.
	u := newUser(t, shared.Env()...)
	u.mustSubmit(t, "--nodes", "2", "--no-submit", u.write(t, "failing.ipynb", failingCells...))
	programs, err := filepath.Glob(filepath.Join(u.run(t).Path(), "bin", "*"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("programs: %v, %v", programs, err)
	}
	tests := []struct {
		name, mpi, how string
		killOnBadExit  int
		kind           rundir.FailureKind
		want           string
	}{
		{"the node crashes", "pmix", "", 0, rundir.Died, ""}, // Its kernel may or may not report that the process ended.
		{"killed, and srun leaves the other", "pmix", "kill", 0, rundir.Died, "ended without World.Close"},
		{"killed, and srun kills the other", "pmix", "kill", 1, rundir.Died, "ended without World.Close"},
		{"killed, with MPICH", "pmi2", "kill", 0, rundir.Died, "ended without World.Close"},
		{"a panic", "pmix", "panic", 0, rundir.Died, "panic: no more batches"},
		{"stopped", "pmix", "stop", 1, rundir.Stuck, "has been silent for"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, run := shared, rundir.At(t.TempDir())
			if test.how == "" {
				c = cluster.Start(t, cluster.Nodes(2))
			}
			cmd := failingJob(u, c, run, programs[0], test.mpi, test.how, test.killOnBadExit)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if test.how == "" {
				eventually(t, "both ranks train", func() bool { return rundir.ReadProgress(run) > 100 })
				if err := c.Crash("n2"); err != nil {
					t.Fatal(err)
				}
			}
			f := awaitFailure(t, run)
			if f.Kind != test.kind || f.Rank != 1 || f.Host != "n2" || f.Step < 1 || !strings.Contains(f.Error, test.want) {
				t.Errorf("recorded: %+v; want %s of rank 1 on n2 with %q", f, test.kind, test.want)
			}
			report := fmt.Sprintf("gonbatch: rank 1 on n2 failed at step %d (%s): ", f.Step, test.kind)
			eventually(t, "the other rank says so", func() bool { return strings.Contains(logOf(run, 0), report) })
			if test.how == "" { // srun waits for the node.
				_ = cmd.Process.Kill()
				t.Logf("srun: %v", <-ended)
				return
			}
			select {
			case err := <-ended:
				if err == nil {
					t.Error("srun ended with success")
				}
			case <-time.After(patience):
				_ = cmd.Process.Kill()
				t.Errorf("srun is still running %v after the failure", patience)
			}
		})
	}
}

// ringFence keeps Open MPI's ranks from dying in MPI_Init under srun: see docs/cluster-setup.md.
const ringFence = "SLURM_PMIX_FENCE=ring"

// failingJob starts the program with srun, without submit.
func failingJob(u user, c *cluster.Cluster, run rundir.Dir, program, mpi, how string, killOnBadExit int) *exec.Cmd {
	cmd := exec.Command("srun", "--mpi="+mpi, "-N2", "--ntasks-per-node=1", fmt.Sprintf("--kill-on-bad-exit=%d", killOnBadExit),
		"--output="+run.RankLogPattern("%t"), program, "-how", how)
	cmd.Dir = u.folder
	cmd.Env = append(append(os.Environ(), c.Env()...), rundir.EnvDir+"="+run.Path(), ringFence)
	if how == "stop" { // In the other cases, a busy machine must not make a rank seem stuck.
		cmd.Env = append(cmd.Env, "GONBATCH_STUCK_TIMEOUT=6s")
	}
	if how == "" { // The other rank waits for half a minute, which need not take all of a CPU.
		cmd.Env = append(cmd.Env, "OMPI_MCA_mpi_yield_when_idle=1")
	}
	if mpi == "pmi2" {
		cmd.Env = append(cmd.Env, "GONBATCH_MPI_LIBRARY=libmpich.so.12")
	}
	_ = os.MkdirAll(run.Logs(), 0o777) // If this fails, srun says so.
	return cmd
}

func logOf(run rundir.Dir, rank int) string {
	text, _ := os.ReadFile(run.RankLog(rank)) // Empty if it does not exist yet.
	return string(text)
}

// awaitFailure waits until a failure is recorded.
func awaitFailure(t *testing.T, run rundir.Dir) (f rundir.Failure) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if f, err = rundir.ReadFailure(run); err == nil {
			return f
		}
	}
	t.Fatalf("no failure is recorded: %v\n%s\n%s", err, logOf(run, 0), logOf(run, 1))
	return f
}
