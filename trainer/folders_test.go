package trainer_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/trainer"
)

// TestFoldsNeedFolders: the second fold of a cross-validation does not get the first one's weights.
func TestFoldsNeedFolders(t *testing.T) {
	dir := t.TempDir()
	trainer.NewProcess()
	fold := func(c trainer.Config) error {
		c.BatchSize = 12
		tr, _ := anotherTrainer(t, c, blobTask(plainNet))
		return tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	}
	inFolder := func(name, resume string, epochs int) trainer.Config {
		return trainer.Config{Name: "fold", MaxEpochs: epochs, Checkpoint: trainer.CheckpointConfig{Dir: filepath.Join(dir, name), Resume: resume}}
	}
	for _, first := range []string{"a", "b"} {
		if err := fold(inFolder(first, "", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := fold(inFolder("a", "", 1)); err == nil || !strings.Contains(err.Error(), `belongs to "fold", which this program has already finished: give each its own folder (checkpoint.dir)`) {
		t.Errorf("got %v, want to be refused", err)
	}
	if err := fold(inFolder("a", "must", 2)); err != nil {
		t.Errorf("it is asked to resume: %v", err)
	}
}

// TestNeverIsANewTraining: the checkpoints of the previous training are set aside, and never
// resumed by later ones.
func TestNeverIsANewTraining(t *testing.T) {
	dir := t.TempDir()
	fit := func(epochs int, resume string, kill int64) string {
		c := trainer.Config{MaxEpochs: epochs, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: dir, Resume: resume}}
		tr, out := newTrainer(t, c, blobTask(plainNet), killAt(kill))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if err := tr.WaitForCheckpoints(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	fit(10, "", 0)
	if out := fit(10, "never", 30); !strings.Contains(out, "are now in "+filepath.Join(dir, "earlier-1")) {
		t.Errorf("it does not say where the old ones are:\n%s", out)
	}
	if out := fit(10, "", 50); !strings.Contains(out, "resumes after step 24,") {
		t.Errorf("it is not the new training run that goes on:\n%s", out)
	}
	if got := steps(t, filepath.Join(dir, "earlier-1")); !slices.Equal(got, []int64{120, 108}) {
		t.Errorf("the old training has the checkpoints %v, want 120 and 108", got)
	}
	t.Setenv(rundir.EnvRestarts, "1") // The scheduler starts the job again.
	if out := fit(10, "never", 80); !strings.Contains(out, "resumes after step 48,") {
		t.Errorf("a restart of the job does not resume its own training:\n%s", out)
	}
}

// TestTwoProcessesOneFolder: if two training runs save to one folder at the same time, one of them
// detects the other.
func TestTwoProcessesOneFolder(t *testing.T) {
	c := trainer.Config{MaxEpochs: 3, BatchSize: 12, Seed: 1, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: 5}}
	second := trainer.WithCallbacks(trainer.Callback{Name: "second", BatchEnd: func(e *trainer.Event) error {
		if e.Step != 7 {
			return nil
		}
		if err := e.Trainer.WaitForCheckpoints(); err != nil {
			return err
		}
		other, _ := newTrainer(t, c, blobTask(plainNet), killAt(13)) // As another process would.
		if err := other.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
			t.Errorf("the second training run: %v", err)
		}
		return other.WaitForCheckpoints()
	}})
	tr, _ := newTrainer(t, c, blobTask(plainNet), second)
	err := tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	if err == nil || !strings.Contains(err.Error(), "was written by another process meanwhile (training \"main\" of a program outside of a run)") {
		t.Errorf("got %v, want to learn of the other training run", err)
	}
}

// TestRestartBesideAnotherRun: a run that shares its folder of checkpoints begins from that of an
// earlier run, but a restart doesn't go on from what another run has written since.
func TestRestartBesideAnotherRun(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	start := func(run string, epochs int, kill int64, folders ...string) error {
		t.Setenv(rundir.EnvDir, filepath.Join(root, run))
		if err := os.MkdirAll(filepath.Join(root, run), 0o777); err != nil {
			t.Fatal(err)
		}
		c := trainer.Config{Name: "net", MaxEpochs: epochs, BatchSize: 12, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: filepath.Join(append([]string{dir}, folders...)...)}}
		tr, _ := newTrainer(t, c, blobTask(plainNet), killAt(kill))
		err := tr.Fit(t.Context(), ranktest.Blobs(145), nil)
		return errors.Join(err, tr.WaitForCheckpoints())
	}
	for _, step := range []struct {
		run    string
		epochs int
		kill   int64
		want   string // In the error; "" for none.
	}{
		{"a", 2, 20, errKilled.Error()}, {"b", 4, 26, errKilled.Error()}, {"b", 4, 40, errKilled.Error()}, {"b", 4, 0, ""},
		{"a", 6, 0, "was written by the run b, which has trained in this folder since this run began"},
		{"a", 6, 0, "was written by the run b"}, {"c", 6, 0, ""}, {"b", 6, 0, "was written by the run c"},
	} {
		err := start(step.run, step.epochs, step.kill)
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Fatalf("%+v: got %v", step, err)
		}
	}
	for _, run := range []string{"d", "e"} { // Folds with the same name, each in its folder.
		for _, fold := range []string{"0", "1"} {
			if err := start(run, 1, 0, "folds", fold); err != nil {
				t.Errorf("run %s, fold %s: %v", run, fold, err)
			}
		}
	}
}

func steps(t *testing.T, dir string) (all []int64) {
	t.Helper()
	infos, err := checkpoint.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		all = append(all, info.Step)
	}
	return all
}
