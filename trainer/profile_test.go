package trainer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// traceFile is a trace as a viewer reads it.
type traceFile struct{ TraceEvents []traceEvent }

type traceEvent struct {
	Ph, Name string
	Pid, Tid int
	Ts, Dur  float64
	Args     struct {
		Name         string
		Step, Thread int
		Waited       float64 `json:"waited for other ranks (ms)"`
	}
}

// rows returns the number of each row of a rank.
func (f traceFile) rows(rank int) map[string]int {
	all := map[string]int{}
	for _, e := range f.TraceEvents {
		if e.Pid == rank && e.Name == "thread_name" {
			all[e.Args.Name] = e.Tid
		}
	}
	return all
}

// spans returns those of a row.
func (f traceFile) spans(rank, row int) (all []traceEvent) {
	for _, e := range f.TraceEvents {
		if e.Pid == rank && e.Tid == row && e.Ph == "X" {
			all = append(all, e)
		}
	}
	return all
}

func readTrace(t *testing.T, path string) (file traceFile) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// counts returns how often a rank has each span, with the update it belongs to, and checks that the
// spans of the training are within each other or apart.
func (f traceFile) counts(t *testing.T, rank int) map[string]int {
	t.Helper()
	all := map[string]int{}
	var open []float64 // When the spans end that have begun.
	for _, e := range f.TraceEvents {
		if e.Pid != rank || e.Ph != "X" {
			continue
		}
		name := e.Name
		if e.Args.Step > 0 {
			name += fmt.Sprint(" ", e.Args.Step)
		}
		all[name]++
		if e.Tid != 0 {
			continue
		}
		for len(open) > 0 && open[len(open)-1] <= e.Ts+1e-3 {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && e.Ts+e.Dur > open[len(open)-1]+1e-3 {
			t.Errorf("rank %d: %s ends after the span in which it begins", rank, name)
		}
		open = append(open, e.Ts+e.Dur)
	}
	return all
}

// TestProfile records some updates of all ranks, with what follows them.
func TestProfile(t *testing.T) { everywhere(t, testProfile) }

func testProfile(t *testing.T) {
	dir := t.TempDir()
	c := trainer.Config{
		MaxEpochs: 2, BatchSize: 12, LimitTrainBatches: 6, AccumulateGradBatches: 2, Seed: 1, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir()},
		Profile: trainer.ProfileConfig{Steps: "2-4", Dir: filepath.Join(dir, "traces")},
	}
	slow := trainer.Callback{Name: "slow", BatchEnd: func(*trainer.Event) error { time.Sleep(time.Millisecond); return nil }}
	tr, out := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(slow))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(40)); err != nil {
		t.Fatal(err)
	}
	if !tr.World().IsMain() {
		return
	}
	path := filepath.Join(dir, "traces", "main-steps-2-4.json")
	file := readTrace(t, path)
	for rank := range tr.World().Size() {
		got := file.counts(t, rank)
		for name, want := range map[string]int{
			"step 1": 0, "step 2": 2, "step 3": 2, "step 4": 2, "step 5": 0, "wait for batch 2": 2, "wait for batch 4": 2,
			"validation": 1, "checkpoint": 1, "callback slow": 6,
		} {
			if got[name] != want {
				t.Errorf("rank %d: %d times %q, want %d: %v", rank, got[name], name, want, got)
			}
		}
		if got["load"] < 3 || got["transfer"] < 3 {
			t.Errorf("rank %d: the loading of the batches is missing: %v", rank, got)
		}
	}
	if !regexp.MustCompile(`steps 2-4: .*(step|validation|callback slow) \d+%.* opens ` + regexp.QuoteMeta(path)).MatchString(out.String()) {
		t.Errorf("no summary in\n%s", out)
	}
}

// TestProfileOfPart: a training that ends or resumes among the updates has a trace of those that
// there are.
func TestProfileOfPart(t *testing.T) {
	c := inFolder(t.TempDir())
	c.Checkpoint.EverySteps = 5
	c.Profile = trainer.ProfileConfig{Steps: "3-100", Dir: t.TempDir()}
	tr, _ := newTrainer(t, c, blobTask(plainNet), killAt(7))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	tr, _ = newTrainer(t, c, blobTask(plainNet))
	mustFit(t, tr)
	got := readTrace(t, filepath.Join(c.Profile.Dir, fmt.Sprintf("main-steps-6-%d.json", tr.Step()))).counts(t, 0)
	if got["step 5"] != 0 || got["step 6"] != 1 || got[fmt.Sprint("step ", tr.Step())] != 1 {
		t.Errorf("the trace has %v", got)
	}
}

// TestProfileOfStopped: a training that is told to stop has a trace of the updates so far; once it
// resumes, another one begins.
func TestProfileOfStopped(t *testing.T) { everywhere(t, testProfileOfStopped) }

func testProfileOfStopped(t *testing.T) {
	c := inFolder(t.TempDir())
	c.Profile = trainer.ProfileConfig{Steps: "3-100", Dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	stop := trainer.Callback{BatchEnd: func(e *trainer.Event) error {
		time.Sleep(25 * time.Millisecond) // So the ranks vote after each update.
		if e.Step == 5 {
			cancel()
		}
		return nil
	}}
	tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(stop))
	var stopped *trainer.StoppedError
	if err := tr.Fit(ctx, ranktest.Blobs(145), nil); !errors.As(err, &stopped) {
		t.Fatal(err)
	}
	first := tr.Step()
	mustFit(t, tr)
	if !tr.World().IsMain() {
		return
	}
	for _, part := range [][2]int64{{3, first}, {first + 1, tr.Step()}} {
		got := readTrace(t, filepath.Join(c.Profile.Dir, fmt.Sprintf("main-steps-%d-%d.json", part[0], part[1]))).counts(t, 0)
		for step := range tr.Step() + 2 {
			if inside := step >= part[0] && step <= part[1]; (got[fmt.Sprint("step ", step)] == 1) != inside {
				t.Errorf("steps %v: %d times step %d", part, got[fmt.Sprint("step ", step)], step)
			}
		}
	}
}

// TestProfileBeyondTheEnd says that there is no trace.
func TestProfileBeyondTheEnd(t *testing.T) {
	c := trainer.Config{MaxSteps: 4, BatchSize: 12, Profile: trainer.ProfileConfig{Steps: "5-9", Dir: t.TempDir()}}
	tr, out := newTrainer(t, c, blobTask(plainNet))
	mustFit(t, tr)
	if want := `profile.steps is "5-9", but the training has ended after step 4: there is no trace`; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// TestProfileThatCannotBeWritten doesn't end the training.
func TestProfileThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 4, BatchSize: 12, Profile: trainer.ProfileConfig{Steps: "2", Dir: file}}, blobTask(plainNet))
	mustFit(t, tr)
	for want, c := range map[string]trainer.ProfileConfig{
		"profile.steps: there is no run directory": {Steps: "2"}, `profile.steps: "2-1": it must be the first and the last update`: {Steps: "2-1"},
		`profile.steps: "0-0": it must be`: {Steps: "0-0"}, `profile.steps: "5-10005": these are 10001 updates, and a trace can have at most 10000`: {Steps: "5-10005"},
	} {
		if _, err := trainer.New(world(t), trainer.Config{Profile: c}, blobTask(plainNet)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// slowBlobs takes time to load a batch.
type slowBlobs struct {
	ranktest.Blobs
	each time.Duration
}

func (s slowBlobs) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	time.Sleep(s.each)
	return s.Blobs.Batch(indices)
}

// TestDataWait: the share of time in which steps wait for their batches is a metric, and in the log
// if there is any.
func TestDataWait(t *testing.T) { everywhere(t, testDataWait) }

func testDataWait(t *testing.T) {
	share := func(ds data.Dataset, workers int, pause time.Duration) (float64, string) {
		var wait float64
		watch := trainer.Callback{
			BatchStart: func(*trainer.Event) error { time.Sleep(pause); return nil },
			EpochEnd:   func(e *trainer.Event) error { wait = e.Metrics["train/data_wait"]; return nil },
		}
		c := trainer.Config{BatchSize: 12, LogEvery: 4, Loader: trainer.LoaderConfig{Workers: workers}}
		tr, out := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(watch))
		if err := tr.Fit(t.Context(), ds, nil); err != nil {
			t.Fatal(err)
		}
		return wait, out.String()
	}
	wait, out := share(slowBlobs{145, 100 * time.Millisecond}, -1, 0)
	if wait < 0.5 || wait > 1 || world(t).IsMain() && !strings.Contains(out, "% waiting for data") {
		t.Errorf("the steps wait for %g of the time, want most of it:\n%s", wait, out)
	}
	// In the pause before a batch is needed, it is loaded. A step takes a millisecond, so on a busy
	// machine, this may take longer.
	ahead := 1.0
	for pause := 20 * time.Millisecond; !(ahead < 0.5) && pause < time.Second; pause *= 4 {
		ahead, _ = share(ranktest.Blobs(145), 2, pause)
	}
	if !(ahead < 0.5) {
		t.Errorf("the steps wait for %g of the time, though all batches are there", ahead)
	}
}

// TestProfileOfUnsaved: if rank 0 can't write the last checkpoint, the other ranks don't wait for
// its part of the trace.
func TestProfileOfUnsaved(t *testing.T) {
	if !ranktest.InRank() {
		if out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"GONBATCH_DEVICES=1", "GONBATCH_STUCK_TIMEOUT=20s"}); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := t.TempDir()
	c := trainer.Config{
		MaxSteps: 4, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: filepath.Join(dir, "checkpoints")},
		Profile: trainer.ProfileConfig{Steps: "2-9", Dir: filepath.Join(dir, "traces")},
	}
	spoil := trainer.Callback{BatchEnd: func(e *trainer.Event) error {
		if !e.Trainer.World().IsMain() || e.Step != 3 {
			return nil
		}
		return errors.Join(os.RemoveAll(c.Checkpoint.Dir), os.WriteFile(c.Checkpoint.Dir, nil, 0o600))
	}}
	tr, _ := newTrainer(t, c, blobTask(plainNet), trainer.WithCallbacks(spoil))
	err := tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	if tr.World().IsMain() != (err != nil && strings.Contains(err.Error(), "checkpoint: ")) {
		t.Errorf("rank %d: %v", tr.World().Rank(), err)
	}
	if err := tr.World().Barrier(); err != nil {
		t.Error(err)
	}
}
