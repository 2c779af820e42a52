package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/submit/result"
)

// TestSweep trains the notebook with three rates on a part of an epoch, on two ranks. Each rate has
// its metrics, and the best one's mistakes are drawn.
func TestSweep(t *testing.T) {
	u := newUser(t, ranktest.QuickCompilation)
	out := u.mustSubmit(t, "--local", "--tasks", "2", example(t, "mnist_sweep.ipynb"),
		"--", "-rates", "1e-5, 2e-3", "-limit_train_batches", "60", "-limit_val_batches", "1", "-log_every", "20")
	wantAll(t, out, "rate-1e-5: epoch 1/1  step 60/60", "rate-2e-3: epoch 1/1  step 60/60", "the best is rate-2e-3\n", "macro F1 ")
	if got := accuracy(t, out); got < 0.8 {
		t.Errorf("test accuracy %.4f, want at least 0.8:\n%s", got, out)
	}
	if n := len(regexp.MustCompile(`(?m)^rate \S+: val/accuracy `).FindAllString(out, -1)); n != 2 {
		t.Errorf("%d results of the sweep, want 2:\n%s", n, out)
	}
	run := u.run(t)
	all, err := rundir.ReadMetrics(run)
	ok(t, err)
	losses := map[string]int{}
	for _, m := range all {
		if _, ok := m.Values["train/loss"]; ok {
			losses[m.Training]++
		}
	}
	if len(losses) != 2 || losses["rate-1e-5"] != 3 || losses["rate-2e-3"] != 3 {
		t.Errorf("the numbers of losses are %v, want 3 for each rate", losses)
	}
	compared := result.Compare(result.At(run.Path()))
	if got := compared.Columns; len(compared.Rows) != 2 || !slices.Equal(got[:3], []string{"run", "training", "learning_rate"}) {
		t.Errorf("the training runs differ in\n%s", compared)
	}
	paths, err := filepath.Glob(filepath.Join(run.Curves(), "rate-2e-3", "images", "mistakes", "*.png"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("pictures of mistakes: %q, %v; want one", paths, err)
	}
	content, err := os.ReadFile(paths[0])
	ok(t, err)
	checkPicture(t, paths[0], content)

	again, err := u.submit(t, "--local", example(t, "mnist_sweep.ipynb"), "--", "-rates", "1e-5,2e-3,1e-5")
	if err == nil || strings.Contains(again, "epoch 1/1") {
		t.Error("it trained with a rate that comes twice")
	}
	wantAll(t, again, `-rates must be positive numbers, each given once; got "1e-5" in "1e-5,2e-3,1e-5"`)
}

// TestSweepInJupyter executes the notebook in a real Jupyter client, on a small part of the images.
func TestSweepInJupyter(t *testing.T) {
	result := inJupyter(t, "mnist_sweep.ipynb", ranktest.QuickCompilation, "GONBATCH_CHECKPOINTS="+t.TempDir(),
		"TRAINER_LIMIT_TRAIN_BATCHES=20", "TRAINER_LIMIT_VAL_BATCHES=1")
	last := result.Outputs[len(result.Outputs)-1]
	wantAll(t, last, "rate-1e-4: epoch 1/1  step 20/20", "rate-1e-3: epoch 1/1  step 20/20", "rate-1e-2: epoch 1/1  step 20/20", "the best is rate-1e-3\n", "macro F1 ")
	if got := accuracy(t, last); got < 0.45 {
		t.Errorf("test accuracy %.4f, want at least 0.45; guessing has 0.1:\n%s", got, last)
	}
	checkShown(t, result, 0, 0, 0, 0, 1)
}
