package trainer_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

func TestFit(t *testing.T) {
	tr, out := newTrainer(t, trainer.Config{MaxEpochs: 3, BatchSize: 12, LogEvery: 5, Seed: 1}, blobTask(smallNet))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(50)); err != nil {
		t.Fatal(err)
	}
	metrics, err := tr.Test(t.Context(), ranktest.Blobs(103))
	if err != nil {
		t.Fatal(err)
	}
	if accuracy := metrics["test/accuracy"]; accuracy < 0.9 {
		t.Errorf("nothing was learnt: %s", metrics)
	}
	if tr.Step() != 36 {
		t.Errorf("%d steps, want 36", tr.Step())
	}
	for _, want := range []string{`(?m)^epoch 1/3  step 12/36  loss \d\.\d{4}  \d+ examples/s`, `(?m)^epoch 3  step 36  val/accuracy \d\.\d{4}, val/loss \d`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line %s in\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "NaN") {
		t.Errorf("NaN in\n%s", out)
	}
}

// TestTwoTrainings: each line of the progress of two training runs says which one it is of.
func TestTwoTrainings(t *testing.T) {
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, LogEvery: 4}
	first, out := newTrainer(t, c, blobTask(plainNet))
	c.Name = "fold-2"
	second, more := anotherTrainer(t, c, blobTask(plainNet))
	for name, run := range map[string]struct {
		trainer *trainer.Trainer
		out     *bytes.Buffer
	}{"main": {first, out}, "fold-2": {second, more}} {
		if err := run.trainer.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(50)); err != nil {
			t.Fatal(err)
		}
		progress := regexp.MustCompile(`(?m)^(.*)epoch \d.*  step \d+`).FindAllStringSubmatch(run.out.String(), -1)
		for _, line := range progress {
			if line[1] != name+": " {
				t.Errorf("the line %q does not begin with %q", line[0], name)
			}
		}
		if len(progress) < 4 {
			t.Errorf("%d lines of progress in\n%s", len(progress), run.out)
		}
	}
}

// TestFitWithoutLabels: a loss that needs labels says so if the dataset has none.
func TestFitWithoutLabels(t *testing.T) {
	tr, _ := newTrainer(t, trainer.Config{MaxSteps: 2, BatchSize: 4}, blobTask(smallNet))
	x, _, err := ranktest.Blobs(16).Batch([]int{0, 1, 2, 3, 4, 5, 6, 7})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := data.Tensors("unlabelled", x, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Fit(t.Context(), ds, nil); err == nil || !strings.Contains(err.Error(), "the dataset has no labels: give it labels, or use a loss without them") {
		t.Errorf("got %v", err)
	}
}
