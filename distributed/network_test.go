package distributed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/rundir"
)

// TestMachines: ranks on machines of their own find one another, also where rank 0 knows its own name as a loopback address.
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

// outage is longer than a connection lives without an answer.
const outage = 8 * time.Second

// TestBadNetwork: an outage ends no training, unless it does not end itself.
func TestBadNetwork(t *testing.T) {
	if ranktest.InRank() {
		trainUntilTold(t)
		return
	}
	t.Run("for some seconds", func(t *testing.T) {
		t.Parallel()
		job := startOnNetwork(t)
		job.network.Cut(1)
		time.Sleep(outage)
		job.network.Heal(1)
		time.Sleep(outage) // The connections come back meanwhile.
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
		if f, err := rundir.ReadFailure(job.dir); err != nil || f.Kind != rundir.Died || f.Rank != 2 || f.Error != "its process ended without World.Close: it was killed, or it gave up" {
			t.Errorf("recorded: %+v, %v", f, err)
		}
	})
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		job := startOnNetwork(t)
		job.network.Cut(2)
		job.wait()
		if f, err := rundir.ReadFailure(job.dir); err != nil || f.Kind != rundir.Died || f.Error != "its machine, or the network to it, did not answer for 30s" {
			t.Errorf("recorded: %+v, %v", f, err)
		}
	})
}

// networkJob is a training of 3 ranks on machines of their own.
type networkJob struct {
	network *ranktest.Network
	dir     rundir.Dir
	ended   chan []ranktest.Ended
}

func startOnNetwork(t *testing.T) *networkJob {
	t.Helper()
	job := &networkJob{ranktest.NewNetwork(t, 3), rundir.At(t.TempDir()), make(chan []ranktest.Ended, 1)}
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, job.dir)
		}
	})
	go func() {
		job.ended <- ranktest.StartLogged(t, job.network.Launcher(), 3, job.dir.Path(), []string{rundir.EnvDir + "=" + job.dir.Path()})
	}()
	for rank := range 3 {
		waitFor(t, job.path("training", rank))
	}
	return job
}

func (j *networkJob) wait() []ranktest.Ended { return <-j.ended }

func (j *networkJob) path(what string, rank int) string {
	return filepath.Join(j.dir.Path(), fmt.Sprintf("%s-%d", what, rank))
}

// tell lets the ranks do something, through the file system, which all machines share.
func (j *networkJob) tell(t *testing.T, what string) {
	if err := os.WriteFile(filepath.Join(j.dir.Path(), what), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", path)
		}
	}
}

// trainUntilTold is the body of a rank that trains, as far as the watch sees, until a file says what to do.
func trainUntilTold(t *testing.T) {
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	w.Progress(1)
	dir := os.Getenv(rundir.EnvDir)
	if err := os.WriteFile(filepath.Join(dir, "training-"+strconv.Itoa(w.Rank())), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for told := func(what string) bool { _, err := os.Stat(filepath.Join(dir, what)); return err == nil }; !told("end"); time.Sleep(20 * time.Millisecond) {
		if told("die") && w.Rank() == 2 {
			killed(w)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
