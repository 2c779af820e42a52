package tests

import (
	"html"
	"regexp"
	"strings"
	"testing"
)

// smallTraining returns cells that train for two epochs.
func smallTraining() (declarations, train string) {
	return withTrainer.cells[1], "%%\nworld, err := distributed.Init()\ncheck(err)\ndefer world.Close()\n" +
		"task := trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).Done())\n" +
		"t, err := trainer.New(world, trainer.Config{MaxEpochs: 2, BatchSize: 10, Loggers: []string{\"none\"}}, task)\n" +
		"check(err)\ncheck(t.Fit(context.Background(), blobs{}, blobs{}))"
}

// TestTrainingAgain runs a training cell again, in a notebook without a run directory: it says that
// the training has finished; a changed cell trains.
func TestTrainingAgain(t *testing.T) {
	t.Parallel()
	declarations, train := smallTraining()
	u := newUser(t)
	changed := strings.Replace(train, "LearningRate(0.01)", "LearningRate(0.02)", 1)
	result := u.execute(t, u.write(t, "again.ipynb", declarations, train, "func unrelated() {}", train, changed, strings.Replace(train, "%%", "%% -hold=false", 1)))
	if result.Error != "" || len(result.Outputs) != 6 {
		t.Fatalf("%d outputs, %s\n%s", len(result.Outputs), result.Error, result.Log)
	}
	for i, finished := range map[int]bool{1: false, 3: true, 4: false, 5: false} {
		if out := result.Outputs[i]; strings.Contains(out, "training was finished after step 40") != finished {
			t.Errorf("cell %d: finished should be %v:\n%s", i+1, finished, out)
		}
	}
	if strings.Contains(result.Outputs[3], "another build") {
		t.Errorf("the code has not changed:\n%s", result.Outputs[3])
	}
	wantAll(t, result.Outputs[3], "to train it again, change the program, or set Checkpoint.Resume to \"never\"")
}

// epochLine matches the line that a notebook shows for a finished epoch.
var epochLine = regexp.MustCompile(`epoch [12]/2  step [24]0/40  loss [0-9.]+  [0-9]+ examples/s  (?:[0-9]+% waiting for data  )?val/loss [0-9.]+`)

// TestEpochLines checks that the executed notebook of a job keeps one line for each epoch.
func TestEpochLines(t *testing.T) {
	t.Parallel()
	declarations, train := smallTraining()
	u := newUser(t)
	u.mustSubmit(t, "--local", u.write(t, "epochs.ipynb", declarations, train))
	executed := html.UnescapeString(read(t, u.run(t).Executed()))
	if lines := epochLine.FindAllString(executed, -1); len(lines) != 2 {
		t.Errorf("%d lines, want 2: %q", len(lines), lines)
		t.Log(executed)
	}
}
