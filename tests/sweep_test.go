package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestSweep trains the notebook with three rates on a part of an epoch, on two ranks. Each rate has
// its metrics, and the best one's mistakes are drawn.
func TestSweep(t *testing.T) {
	u := newUser(t, ranktest.QuickCompilation)
	out := u.mustSubmit(t, "--local", "--tasks", "2", example(t, "mnist_sweep.ipynb"),
		"--", "-rates", "1e-5,2e-3", "-limit_train_batches", "60", "-limit_val_batches", "1", "-log_every", "20")
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
	paths, err := filepath.Glob(filepath.Join(run.Curves(), "rate-2e-3", "images", "mistakes", "*.png"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("pictures of mistakes: %q, %v; want one", paths, err)
	}
	content, err := os.ReadFile(paths[0])
	ok(t, err)
	checkPicture(t, paths[0], content)
}
