package distributed_test

import (
	"log"
	"os"
	"regexp"
	"testing"
	"time"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// TestRankDoesNotCome: if a rank never calls Init, the others give up after the time limit and
// report why.
func TestRankDoesNotCome(t *testing.T) {
	if ranktest.InRank() {
		env, err := cluster.Detect(os.Getenv)
		if err != nil {
			t.Fatal(err)
		}
		if env.Rank == 1 {
			time.Sleep(15 * time.Second)
			return
		}
		if _, err := distributed.Init(); err != nil {
			log.Fatal(err)
		}
		return
	}
	t.Parallel()
	missing := `rank 0 of 2 on \S+ has waited 3s for the other ranks to start and gives up: at least one of the 2 `
	tests := map[*ranktest.Launcher]string{
		&ranktest.OpenMPI:  missing,
		&ranktest.MPICH:    missing,
		&ranktest.Torchrun: `tcp: rank 0 of 2: .*rank 1`,
	}
	for launcher, want := range tests {
		t.Run(launcher.Name, func(t *testing.T) {
			t.Parallel()
			run := rundir.At(t.TempDir())
			old := rundir.Failure{Kind: rundir.NaN, Error: "from an earlier start"}
			if _, err := old.Write(run); err != nil {
				t.Fatal(err)
			}
			ended := ranktest.StartLogged(t, *launcher, 2, run.Path(), []string{rundir.EnvDir + "=" + run.Path(), rundir.EnvStuckTimeout + "=3s"})
			if ended[0].Code == 0 {
				t.Error("the job ended with success")
			}
			text, err := os.ReadFile(run.RankLog(0))
			if err != nil || !regexp.MustCompile("distributed: "+want).Match(text) {
				t.Errorf("rank 0's log: %v\n%s\nwant %q", err, text, want)
			}
			f, err := rundir.ReadFailure(run)
			if err != nil || f.Kind != rundir.Stuck || f.Rank != 0 || !regexp.MustCompile(want).MatchString(f.Error) {
				t.Errorf("recorded: %+v, %v; want %q", f, err, want)
			}
		})
	}
}
