package trainer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/plural"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

var errKilled = errors.New("killed")

// killAt ends a training run abruptly after an update.
func killAt(step int64) trainer.Option {
	return trainer.WithCallbacks(trainer.Callback{Name: "killer", BatchEnd: func(e *trainer.Event) error {
		if e.Step == step {
			return errKilled
		}
		return nil
	}})
}

// stopAt simulates a person who presses Ctrl-C after a step.
func stopAt(step int64, cancel context.CancelFunc) trainer.Option {
	return trainer.WithCallbacks(trainer.Callback{Name: "person", BatchEnd: func(e *trainer.Event) error {
		if e.Step == step {
			cancel()
		}
		return nil
	}})
}

// resumeBody: a training run that is killed, resumed, stopped, and resumed ends with the same bits
// as an undisturbed one.
func resumeBody(t *testing.T) {
	c := trainer.Config{
		MaxEpochs: 20, BatchSize: 12, AccumulateGradBatches: 2, Seed: 3, LogEvery: 4, GradientClipNorm: 1,
		Strategy: os.Getenv(strategy), Schedule: trainer.ScheduleConfig{Kind: "one-cycle", WarmupSteps: 3}, Checkpoint: trainer.CheckpointConfig{Off: true},
	}
	fit := func(c trainer.Config, ctx context.Context, options ...trainer.Option) (*trainer.Trainer, *bytes.Buffer, error) {
		tr, out := newTrainer(t, c, blobTask(smallNet), options...)
		return tr, out, tr.Fit(ctx, ranktest.Blobs(145), nil)
	}
	want, _, err := fit(c, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want.Step() != 120 {
		t.Errorf("%d steps, want 120", want.Step())
	}
	c.Checkpoint = trainer.CheckpointConfig{EverySteps: 7, Dir: os.Getenv("CHECKPOINTS")}
	if _, _, err := fit(c, t.Context(), killAt(17)); !errors.Is(err, errKilled) {
		t.Fatalf("got %v, want the kill", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var stopped *trainer.StoppedError
	if _, _, err := fit(c, ctx, stopAt(20, cancel)); !errors.As(err, &stopped) || stopped.Checkpoint != c.Checkpoint.Dir || stopped.Step >= 120 {
		t.Fatalf("got %v, want to be stopped", err)
	}
	c.Checkpoint.Resume = "must"
	got, out, err := fit(c, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if from := fmt.Sprintf("training resumes after step %d, ", stopped.Step); got.World().IsMain() && !strings.Contains(out.String(), from) {
		t.Errorf("no %q in\n%s", from, out)
	}
	compareWeights(t, weights(t, got.Store()), weights(t, want.Store()))
}

func TestResumeIsExact(t *testing.T) {
	if ranktest.InRank() {
		resumeBody(t)
		return
	}
	type resumed struct {
		name     string
		launcher ranktest.Launcher
		ranks    int
		env      string
	}
	tests := []resumed{
		{"spmd", ranktest.OpenMPI, 1, "GONBATCH_DEVICES=2"},
		{"ddp over MPI", ranktest.OpenMPI, 2, "GONBATCH_DEVICES=1"},
		{"ddp on GPUs", ranktest.Torchrun.OnGPUs(t, 2), 2, "GONBATCH_DEVICES=1"},
		{"zero1 over TCP", ranktest.Torchrun, 2, strategy + "=zero1"},
		{"single", ranktest.OpenMPI, 1, "GONBATCH_DEVICES=1"},
		{"ddp over TCP", ranktest.Torchrun, 2, "GONBATCH_DEVICES=1"},
		{"ddp on 4 GPUs", ranktest.OpenMPI.OnGPUs(t, 4), 4, "GONBATCH_DEVICES=1"},
		{"zero1 over MPI", ranktest.MPICH, 3, strategy + "=zero1"},
	}
	for _, test := range tier.Fewer(tests, 4) {
		t.Run(test.name, func(t *testing.T) {
			out, err := ranktest.Start(t, test.launcher, test.ranks, []string{test.env, "CHECKPOINTS=" + t.TempDir()})
			if passed := strings.Count(out, "--- PASS: TestResumeIsExact ("); err != nil || passed != test.ranks {
				t.Errorf("%d of %d ranks passed, %v:\n%s", passed, test.ranks, err, out)
			}
		})
	}
}

// otherWorldBody is a rank of TestOtherWorldSize: a training run that is killed after the update of
// KILL, if that is set.
func otherWorldBody(t *testing.T) {
	c := trainer.Config{
		MaxEpochs: 5, BatchSize: 12, Seed: 3, Loggers: []string{"none"},
		Checkpoint: trainer.CheckpointConfig{EverySteps: 7, Dir: os.Getenv("CHECKPOINTS")},
	}
	kill, err := strconv.ParseInt(os.Getenv("KILL"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	tr, out := newTrainer(t, c, sgdTask(0.1), killAt(kill))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); kill > 0 && !errors.Is(err, errKilled) || kill == 0 && err != nil {
		t.Fatal(err)
	}
	fmt.Print(out.String())
	if tr.World().IsMain() {
		writeGob(t, os.Getenv("OUTCOME"), floats(t, tr))
	}
}

// TestOtherWorldSize: two ranks resume a checkpoint of one, and the other way round, on CPUs and
// GPUs. They print that, and see the same examples: the weights are those of an undisturbed
// training.
func TestOtherWorldSize(t *testing.T) {
	if ranktest.InRank() {
		otherWorldBody(t)
		return
	}
	fit := func(t *testing.T, launcher ranktest.Launcher, ranks int, checkpoints string, kill int) ([]float64, string) {
		outcome := tempFile(t, "outcome")
		out, err := ranktest.Start(t, launcher, ranks, []string{"CHECKPOINTS=" + checkpoints, "OUTCOME=" + outcome, fmt.Sprintf("KILL=%d", kill)})
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var weights []float64
		readGob(t, outcome, &weights)
		return weights, out
	}
	cpus, gpus := ranktest.OpenMPI, ranktest.OpenMPI.OnGPUs(t, 2)
	want, _ := fit(t, cpus, 1, t.TempDir(), 0)
	tests := []struct {
		name      string
		launchers [2]ranktest.Launcher
		ranks     [2]int
	}{
		{"1, then 2", [2]ranktest.Launcher{cpus, cpus}, [2]int{1, 2}},
		{"2, then 1", [2]ranktest.Launcher{cpus, cpus}, [2]int{2, 1}},
		{"2 on GPUs, then 1 on CPUs", [2]ranktest.Launcher{gpus, cpus}, [2]int{2, 1}},
		{"1 on a GPU, then 2", [2]ranktest.Launcher{gpus, gpus}, [2]int{1, 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkpoints, ranks := t.TempDir(), test.ranks
			fit(t, test.launchers[0], ranks[0], checkpoints, 30)
			got, out := fit(t, test.launchers[1], ranks[1], checkpoints, 0)
			said := fmt.Sprintf("the checkpoint is of %s, this is a job of %d: the order of the examples stays the same", plural.Of(ranks[0], "rank"), ranks[1])
			if !strings.Contains(out, said) || !strings.Contains(out, "resumes after step 28,") {
				t.Errorf("no %q, or not from step 28:\n%s", said, out)
			}
			if d := distance(got, want); !(d < 1e-5) {
				t.Errorf("the weights differ by %g", d)
			}
		})
	}
}

// TestRateAfterResume: the first report after a resume has the rate of this process: batches of the
// earlier one count for its loss only.
func TestRateAfterResume(t *testing.T) {
	c := trainer.Config{MaxSteps: 10, MaxEpochs: 10, BatchSize: 12, LogEvery: 10, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: 9}}
	tr, _ := newTrainer(t, c, sgdTask(0.1), killAt(10))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	var began time.Time
	examples := math.Inf(1)
	measure := trainer.Callback{
		FitStart: func(*trainer.Event) error { began = time.Now(); return nil },
		FitEnd: func(e *trainer.Event) error {
			examples = e.Metrics["train/examples_per_second"] * time.Since(began).Seconds()
			return nil
		},
		BatchEnd: func(*trainer.Event) error { time.Sleep(200 * time.Millisecond); return nil }, // Before the report.
	}
	tr, _ = newTrainer(t, c, sgdTask(0.1), trainer.WithCallbacks(measure))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	if !(examples < 30) {
		t.Errorf("the rate is that of %.0f examples, want 12", examples)
	}
}
