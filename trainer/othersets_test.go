package trainer_test

import (
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// described is a dataset that says what its labels and inputs mean.
type described struct {
	data.Dataset
	classes, inputs, labels []string
}

func (d described) Classes() []string                  { return d.classes }
func (d described) Columns() (inputs, labels []string) { return d.inputs, d.labels }

// TestSameMeaning: a set whose labels or inputs mean something else than those of the training set
// is refused, wherever it is used, also before Fit if there is a checkpoint. One that doesn't say
// what they mean is accepted, and so is one without the last classes. What has no use for labels
// takes any.
func TestSameMeaning(t *testing.T) {
	blobs := ranktest.Blobs(36)
	training := described{blobs, []string{"a", "b", "c"}, []string{"x", "y"}, []string{"z"}}
	refusals := map[string]data.Dataset{
		"": described{Dataset: blobs, classes: []string{"a", "b"}},
		`has the classes ["a" "c"], and the training set`:     data.Range(described{Dataset: blobs, classes: []string{"a", "c"}}, 0, 12),
		`has the classes ["a" "c" "b"], and the training set`: described{blobs, []string{"a", "c", "b"}, []string{"x", "y"}, nil},
		`has the label columns ["v"], and the training set`:   described{Dataset: blobs, labels: []string{"v"}},
		`has the input columns ["y" "x"], and the training`:   described{Dataset: blobs, inputs: []string{"y", "x"}},
	}
	c := trainer.Config{MaxSteps: 2, BatchSize: 12, Loggers: []string{"none"}}
	for want, ds := range refusals {
		c.Checkpoint.Dir = t.TempDir()
		check := func(where string, err error) {
			t.Helper()
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", where, err, want)
			}
		}
		tr, _ := newTrainer(t, c, blobTask(smallNet))
		check("Fit", tr.Fit(t.Context(), training, ds))
		tr, _ = newTrainer(t, c, blobTask(smallNet), trainer.WithValidation("second", ds))
		check("WithValidation", tr.Fit(t.Context(), training, training))
		tr, _ = newTrainer(t, c, blobTask(smallNet))
		mustFitOn(t, tr, training)
		again, _ := newTrainer(t, c, blobTask(smallNet))
		for where, tr := range map[string]*trainer.Trainer{"after Fit": tr, "before Fit": again} {
			_, err := tr.Test(t.Context(), ds)
			check("Test "+where, err)
			_, err = tr.Confusion(t.Context(), ds, nil)
			check("Confusion "+where, err)
			_, classifyErr := tr.Classify(t.Context(), ds, nil)
			err = tr.Predict(t.Context(), ds, func([]int, []*tensors.Tensor) error { return nil })
			if refused := strings.Contains(want, "input"); (err != nil) != refused || (classifyErr != nil) != refused {
				t.Errorf("Predict and Classify %s: %v, %v; want errors: %v", where, err, classifyErr, refused)
			}
		}
	}
}

// TestNoLabels: a set without labels can't be tested, and doesn't keep others from being tested.
func TestNoLabels(t *testing.T) {
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 2, BatchSize: 12}, blobTask(smallNet))
	mustFitOn(t, tr, ranktest.Blobs(36))
	for range 2 {
		if _, err := tr.Test(t.Context(), unlabeled{ranktest.Blobs(36)}); err == nil || !strings.Contains(err.Error(), "the dataset has no labels: give it labels") {
			t.Error(err)
		}
		if _, err := tr.Test(t.Context(), ranktest.Blobs(36)); err != nil {
			t.Error(err)
		}
	}
}

// mustFitOn trains on a set, and validates on it.
func mustFitOn(t *testing.T, tr *trainer.Trainer, ds data.Dataset) {
	t.Helper()
	if err := tr.Fit(t.Context(), ds, ds); err != nil {
		t.Fatal(err)
	}
}

// TestAnotherValidationSet: when a training resumes, what was best on another validation set
// doesn't count.
func TestAnotherValidationSet(t *testing.T) {
	c := inFolder(t.TempDir())
	c.MaxEpochs, c.BatchSize, c.Loggers = 1, 12, []string{"none"}
	fit := func(epochs int, validation data.Dataset) string {
		t.Helper()
		c.MaxEpochs = epochs
		tr, out := newTrainer(t, c, blobTask(smallNet))
		if err := tr.Fit(t.Context(), ranktest.Blobs(36), validation); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	c.Checkpoint.Monitor = "train/loss"
	fit(1, data.Range(ranktest.Blobs(36), 0, 12))
	if out := fit(2, data.Range(ranktest.Blobs(36), 0, 24)); strings.Contains(out, "forgotten") {
		t.Errorf("the monitor is of the training set: %s", out)
	}
	c.Checkpoint.Dir, c.Checkpoint.Monitor = t.TempDir(), "val/loss"
	const warning = "warning: the validation set is another one than before"
	fit(1, data.Range(ranktest.Blobs(36), 0, 12))
	if out := fit(2, data.Range(ranktest.Blobs(36), 0, 12)); strings.Contains(out, warning) {
		t.Error(out)
	}
	if out := fit(3, data.Range(ranktest.Blobs(36), 0, 24)); !strings.Contains(out, warning) {
		t.Error(out)
	}
	if out := fit(4, data.Range(ranktest.Blobs(36), 0, 24)); strings.Contains(out, warning) {
		t.Error(out)
	}
}

// TestWeightsInStore: a trainer says whose weights it begins with.
func TestWeightsInStore(t *testing.T) {
	c := trainer.Config{MaxSteps: 2, BatchSize: 12, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	store := model.NewStore()
	for _, want := range []string{"", "the training begins with the weights that are in its store already"} {
		tr, out := newTrainer(t, c, blobTask(smallNet), trainer.WithStore(store))
		if mustFit(t, tr); want != "" && !strings.Contains(out.String(), want) || want == "" && strings.Contains(out.String(), "store") {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	tr, out := newTrainer(t, c, blobTask(smallNet), trainer.WithStore(store))
	if _, err := tr.Test(t.Context(), ranktest.Blobs(36)); err != nil || !strings.Contains(out.String(), "the weights are those in the store") {
		t.Errorf("%v\n%s", err, out)
	}
}
