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

// meaning is a dataset that says what its labels and inputs mean.
type meaning struct {
	data.Dataset
	classes, inputs []string
}

func (n meaning) Classes() []string { return n.classes }
func (n meaning) Inputs() []string  { return n.inputs }

// TestSameMeaning: a set whose labels or inputs mean something else than those of the training set
// is refused, wherever it is used. One that doesn't say what they mean is accepted.
func TestSameMeaning(t *testing.T) {
	training := meaning{ranktest.Blobs(36), []string{"a", "b", "c"}, []string{"x", "y"}}
	refusals := map[string]data.Dataset{
		"": meaning{Dataset: ranktest.Blobs(36)},
		`has the classes ["a" "c"], and the training set`:     data.Range(meaning{ranktest.Blobs(36), []string{"a", "c"}, nil}, 0, 12),
		`has the classes ["a" "c" "b"], and the training set`: meaning{ranktest.Blobs(36), []string{"a", "c", "b"}, []string{"x", "y"}},
		`has the inputs ["y" "x"], and the training set`:      meaning{ranktest.Blobs(36), nil, []string{"y", "x"}},
	}
	c := trainer.Config{MaxSteps: 2, BatchSize: 12, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
	for want, ds := range refusals {
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
		if err := tr.Fit(t.Context(), training, training); err != nil {
			t.Fatal(err)
		}
		_, err := tr.Test(t.Context(), ds)
		check("Test", err)
		_, err = tr.Confusion(t.Context(), ds, nil)
		check("Confusion", err)
		err = tr.Predict(t.Context(), ds, func([]int, []*tensors.Tensor) error { return nil })
		if refused := strings.Contains(want, "inputs"); (err != nil) != refused {
			t.Errorf("Predict: %v, want an error: %v", err, refused)
		}
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
	const warning = "warning: the validation set is not that of "
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
