package trainer_test

import (
	"strings"
	"testing"
	"time"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/trainer"
)

// TestLostStartWritesNothing: a training run that its scheduler has lost, and started again
// elsewhere, writes no checkpoints.
func TestLostStartWritesNothing(t *testing.T) {
	run, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(rundir.EnvDir, run.Path())
	t.Setenv(rundir.EnvRestarts, "0")
	start := func() {
		if _, err := rundir.AddStart(run, "job 12"); err != nil {
			t.Fatal(err)
		}
	}
	start()
	startAgain := trainer.Callback{Name: "scheduler", BatchEnd: func(e *trainer.Event) error {
		if e.Step == 10 {
			start()
		}
		return nil
	}}
	folder := t.TempDir()
	tr, _ := newTrainer(t, trainer.Config{
		MaxEpochs: 2, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: folder, EverySteps: 8}, Loggers: []string{"none"},
	}, blobTask(plainNet), trainer.WithCallbacks(startAgain))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err == nil || !strings.Contains(err.Error(), "started the run again") {
		t.Errorf("error %v, want that the scheduler started the run again", err)
	}
	saved, err := checkpoint.List(folder)
	for deadline := time.Now().Add(5 * time.Minute); err == nil && len(saved) == 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		saved, err = checkpoint.List(folder) // It is being written to disk.
	}
	if err != nil || len(saved) != 1 || saved[0].Step != 8 {
		t.Errorf("checkpoints %v, %v; want the one after step 8, before the other start", saved, err)
	}
}
