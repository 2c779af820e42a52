package distributed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestMachines: ranks on different machines find one another, even if rank 0's own name resolves to
// a loopback address there.
func TestMachines(t *testing.T) {
	if ranktest.InRank() {
		reduceOnce(t)
		return
	}
	network := ranktest.NewNetwork(t, 3)
	if out, err := ranktest.Start(t, network.Launcher(), 3, nil); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func reduceOnce(t *testing.T) {
	w := initWorld(t)
	sum := []float64{float64(w.Rank() + 1)}
	if err := w.AllReduceSum(sum); err != nil || sum[0] != 6 {
		t.Errorf("the sum is %v, want 6: %v", sum, err)
	}
}

// outage is longer than a connection survives without an answer.
const outage = 8 * time.Second

// TestBadNetwork: a training run survives a short outage, but not a permanent one.
func TestBadNetwork(t *testing.T) {
	if ranktest.InRank() {
		trainUntilTold(t)
		return
	}
	t.Parallel()
	t.Run("for some seconds", func(t *testing.T) {
		t.Parallel()
		job := startOnNetwork(t)
		job.network.Cut(1)
		time.Sleep(outage)
		job.network.Heal(1)
		time.Sleep(outage) // The ranks reconnect meanwhile.
		job.tell(t, "end")
		for rank, e := range job.wait() {
			if e.Code != 0 {
				t.Errorf("rank %d ended with code %d", rank, e.Code)
			}
		}
		if f, err := rundir.ReadFailure(job.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("recorded as a failure: %+v, %v", f, err)
		}
	})
	t.Run("for some seconds, before a rank dies", func(t *testing.T) {
		t.Parallel()
		job := startOnNetwork(t)
		job.network.Cut(0)
		time.Sleep(outage)
		job.network.Heal(0)
		time.Sleep(outage)
		job.tell(t, "die")
		job.wait()
		if f, err := rundir.ReadFailure(job.dir); err != nil || f.Kind != rundir.Died || f.Rank != 2 || f.Error != "its process ended without World.Close: it was killed, or it exited" {
			t.Errorf("recorded: %+v, %v", f, err)
		}
	})
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		job := startOnNetwork(t)
		job.network.Cut(2)
		cut := time.Now()
		for rank, e := range job.wait() {
			t.Logf("rank %d ended with code %d, %v after the cut", rank, e.Code, e.At.Sub(cut).Round(time.Millisecond))
		}
		if f, err := rundir.ReadFailure(job.dir); err != nil || f.Kind != rundir.Died || f.Rank != 2 || !strings.Contains(f.Error, "did not answer") {
			t.Errorf("recorded: %+v, %v", f, err)
		}
	})
}

// TestHeldUp: ranks that get no processor for some seconds are not reported as dead.
func TestHeldUp(t *testing.T) {
	if ranktest.InRank() {
		trainUntilTold(t)
		return
	}
	t.Parallel()
	for _, launcher := range []ranktest.Launcher{ranktest.Torchrun, ranktest.OpenMPI} {
		t.Run(launcher.Name, func(t *testing.T) {
			t.Parallel()
			job := startJob(t, launcher)
			for range 3 {
				job.holdUp(t)
			}
			job.tell(t, "end")
			for _, e := range job.wait() {
				if e.Code != 0 {
					t.Errorf("ended with code %d", e.Code)
				}
			}
			if f, err := rundir.ReadFailure(job.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("recorded as a failure: %+v, %v", f, err)
			}
		})
	}
}

// holdUp stops some ranks for some seconds.
func (j *trainingJob) holdUp(t *testing.T) {
	which := 1 + rand.IntN(7) // One, two or all of three.
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		for rank := range 3 {
			if which&(1<<rank) == 0 {
				continue
			}
			text, err := os.ReadFile(j.path("training", rank))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, signal); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Millisecond)
	}
}

// trainingJob is a training run of 3 ranks.
type trainingJob struct {
	network *ranktest.Network // Nil if all ranks run on this machine.
	dir     rundir.Dir
	ended   chan []ranktest.Ended
}

func startOnNetwork(t *testing.T) *trainingJob {
	t.Helper()
	network := ranktest.NewNetwork(t, 3)
	job := startJob(t, network.Launcher())
	job.network = network
	return job
}

func startJob(t *testing.T, launcher ranktest.Launcher) *trainingJob {
	t.Helper()
	job := &trainingJob{dir: rundir.At(t.TempDir()), ended: make(chan []ranktest.Ended, 1)}
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, job.dir)
		}
	})
	go func() {
		job.ended <- ranktest.StartLogged(t, launcher, 3, job.dir.Path(), []string{rundir.EnvDir + "=" + job.dir.Path()})
	}()
	for rank := range 3 {
		waitFor(t, job.path("training", rank))
	}
	return job
}

func (j *trainingJob) wait() []ranktest.Ended { return <-j.ended }

func (j *trainingJob) path(what string, rank int) string {
	return filepath.Join(j.dir.Path(), fmt.Sprintf("%s-%d", what, rank))
}

// tell sends the ranks a command through the file system, which all machines share.
func (j *trainingJob) tell(t *testing.T, what string) {
	if err := os.WriteFile(filepath.Join(j.dir.Path(), what), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s was not written", path)
		}
	}
}

// trainUntilTold is the body of a rank that trains until a file tells it to stop.
func trainUntilTold(t *testing.T) {
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	w.Progress(1)
	dir := os.Getenv(rundir.EnvDir)
	file := filepath.Join(dir, "training-"+strconv.Itoa(w.Rank()))
	if err := os.WriteFile(file+".tmp", []byte(strconv.Itoa(os.Getpid())), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		t.Fatal(err)
	}
	told := func(what string) float64 {
		if _, err := os.Stat(filepath.Join(dir, what)); err != nil {
			return 0
		}
		return 1
	}
	for end := 0.0; end == 0; time.Sleep(20 * time.Millisecond) {
		if told("die") > 0 && w.Rank() == 2 {
			killed(w)
		}
		values := []float64{told("end")}
		if err := w.AllReduceSum(values); err != nil {
			t.Fatal(err)
		}
		end = values[0]
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
