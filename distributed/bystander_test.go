package distributed_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"gonbatch/distributed"
	"gonbatch/distributed/affinity"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
)

// TestBystander: while more ranks train than they have CPUs, or several devices of a process, and
// wait for one another, another process that sleeps for 10 ms at a time always gets a CPU
// within a second.
func TestBystander(t *testing.T) {
	const ranks = 8
	if ranktest.InRank() {
		ranktest.RunWith(t, nil, 0, trainUnevenly)
		return
	}
	for _, test := range []struct {
		launcher ranktest.Launcher
		ranks    int
	}{
		{ranktest.OpenMPI, ranks},
		{ranktest.OpenMPI.With(" that polls", "OMPI_MCA_mpi_yield_when_idle=0"), ranks},
		{ranktest.MPICH, ranks},
		{ranktest.Torchrun, ranks},
		{ranktest.Torchrun.With(" of 4 devices", rundir.EnvDevices+"=4"), 1},
	} {
		t.Run(test.launcher.String(), func(t *testing.T) {
			gap := time.Duration(0)
			for range 2 { // A virtual machine may stand still by itself.
				ended, longest := make(chan struct{}), make(chan time.Duration)
				go func() { longest <- longestGap(ended) }()
				out, err := ranktest.Start(t, test.launcher, test.ranks, nil)
				close(ended)
				if gap = <-longest; err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Logf("the longest gap: %s", gap)
				if gap < time.Second {
					return
				}
			}
			t.Errorf("this process got no CPU for %s", gap)
		})
	}
}

// longestGap sleeps for 10 ms at a time until ended is closed, and returns the longest time that a
// sleep took.
func longestGap(ended <-chan struct{}) (longest time.Duration) {
	for {
		began := time.Now()
		select {
		case <-ended:
			return longest
		case <-time.After(10 * time.Millisecond):
			longest = max(longest, time.Since(began))
		}
	}
}

// trainUnevenly trains for a few seconds, on two of the machine's CPUs. In each epoch, the others
// wait for one of the ranks.
func trainUnevenly(t *testing.T) {
	allowed, err := affinity.Allowed()
	if err == nil {
		err = affinity.Pin(allowed[:min(2, len(allowed))])
	}
	if err != nil {
		t.Fatal(err)
	}
	w, seconds := initWorld(t), tier.Tries(4, 2)
	loader, err := w.Loader(ranktest.Blobs(240), distributed.LoaderOptions{BatchSize: 24, Shuffle: true, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	trainer := newTrainer(w, 42)
	began := time.Now()
	for epochs := 0; ; epochs++ {
		if epochs%w.Size() == w.Rank() {
			time.Sleep(20 * time.Millisecond)
		}
		if err := epoch(w, trainer, loader); err != nil {
			t.Fatal(err)
		}
		late := []float64{time.Since(began).Seconds()} // The sum is the same on all ranks.
		if err := w.AllReduceSum(late); err != nil {
			t.Fatal(err)
		}
		if late[0] > float64(seconds*w.Size()) {
			return
		}
	}
}

// TestThreadNames: Linux gets no entries for the threads of XLA's plugin, which names them all.
func TestThreadNames(t *testing.T) {
	initWorld(t)
	threads, err := procfs.AllThreads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		if name, err := thread.Comm(); err == nil && strings.HasPrefix(name, "tf_") {
			t.Errorf("a thread is named %s", name)
		}
	}
}
