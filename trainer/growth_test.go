package trainer_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/prometheus/procfs"

	"gonbatch/distributed/memory"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/trainer"
)

// growthSteps is the number of updates of TestNoGrowth: go test ./trainer -run NoGrowth -v -args
// -growth-steps 10000.
var growthSteps = flag.Int("growth-steps", 2000, "updates of the training run of TestNoGrowth")

// resources are what a process holds.
type resources struct {
	Step       int64
	Resident   int // Bytes, after a garbage collection.
	Heap       uint64
	Large      int64 // The most bytes of large blocks, such as XLA's buffers, since the last look.
	Goroutines int
	Files      int
	Threads    int
}

func (r resources) String() string {
	return fmt.Sprintf("step %d: %.1f MB resident, %.1f MB of Go's heap, %.1f MB of large blocks, %d goroutines, %d open files, %d threads", r.Step,
		float64(r.Resident)/1e6, float64(r.Heap)/1e6, float64(r.Large)/1e6, r.Goroutines, r.Files, r.Threads)
}

// held returns what this process holds.
func held(step int64) (resources, error) {
	for range 3 { // Finalizers free tensors.
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := resources{Step: step, Heap: m.HeapAlloc, Large: memory.Peak(), Goroutines: runtime.NumGoroutine()}
	self, err := procfs.Self()
	if err != nil {
		return r, err
	}
	if r.Files, err = self.FileDescriptorsLen(); err != nil {
		return r, err
	}
	stat, err := self.Stat()
	r.Resident, r.Threads = stat.ResidentMemory(), stat.NumThreads
	return r, err
}

// TestNoGrowth: a training run on two ranks, with a loader that loads ahead, metrics, loggers,
// validations and checkpoints, holds as much after thousands of updates as after the first tenth.
func TestNoGrowth(t *testing.T) {
	if !ranktest.InRank() {
		out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"GONBATCH_DEVICES=1", rundir.EnvDir + "=" + t.TempDir(), fmt.Sprintf("%s=%d", growthEnv, *growthSteps)})
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Log(out)
		return
	}
	var steps int
	if _, err := fmt.Sscan(os.Getenv(growthEnv), &steps); err != nil {
		t.Fatal(err)
	}
	var looks []resources
	look := trainer.Callback{Name: "look", BatchEnd: func(e *trainer.Event) error {
		if e.Step%int64(steps/10) != 0 {
			return nil
		}
		r, err := held(e.Step)
		looks = append(looks, r)
		return err
	}}
	config := trainer.Config{MaxSteps: steps, BatchSize: 16, LogEvery: 10, ValCheckInterval: 50, EvalBatchSize: 32, Checkpoint: trainer.CheckpointConfig{EverySteps: 100, Keep: 2}}
	tr, _ := newTrainer(t, config, blobTask(smallNet), trainer.WithCallbacks(look))
	if err := tr.Fit(t.Context(), ranktest.Blobs(480), ranktest.Blobs(64)); err != nil {
		t.Fatal(err)
	}
	for _, r := range looks {
		t.Log(r)
	}
	checkGrowth(t, looks[0], least(looks[len(looks)-3:]))
}

// least returns the least of what a process held at several times: a checkpoint or a picture of
// curves that is being written takes memory for a moment.
func least(looks []resources) resources {
	least := looks[len(looks)-1]
	for _, r := range looks {
		least.Resident, least.Heap, least.Large = min(least.Resident, r.Resident), min(least.Heap, r.Heap), min(least.Large, r.Large)
		least.Goroutines, least.Files, least.Threads = min(least.Goroutines, r.Goroutines), min(least.Files, r.Files), min(least.Threads, r.Threads)
	}
	return least
}

const growthEnv = "TRAINER_TEST_GROWTH_STEPS"

// checkGrowth compares what a process holds with what it held before. What the Go runtime and
// malloc keep for themselves varies.
func checkGrowth(t *testing.T, before, after resources) {
	t.Helper()
	if grown := after.Resident - before.Resident; grown > 16<<20 {
		t.Errorf("the process has %.1f MB more than before", float64(grown)/1e6)
	}
	if grown := int64(after.Heap) - int64(before.Heap); grown > 2<<20 {
		t.Errorf("Go's heap has %.1f MB more than before", float64(grown)/1e6)
	}
	if after.Large > before.Large+1<<20 {
		t.Errorf("large blocks take %d bytes, %d before", after.Large, before.Large)
	}
	const few = 4 // The runtime starts threads as it needs them.
	if after.Goroutines > before.Goroutines+few || after.Files > before.Files+few || after.Threads > before.Threads+few {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}
