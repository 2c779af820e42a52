package tests

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// TestFashionMNIST trains the notebook on a part of two epochs, on one rank, and on two in
// bfloat16.
func TestFashionMNIST(t *testing.T) {
	tier.Long(t)
	for _, tasks := range []string{"1", "2"} {
		precision := map[string]string{"1": "32-true", "2": "bf16-mixed"}[tasks]
		t.Run(tasks+" ranks", func(t *testing.T) {
			u := newUser(t, ranktest.QuickCompilation)
			out := u.mustSubmit(t, "--local", "--tasks", tasks, example(t, "fashion_mnist.ipynb"),
				"--", "-max_epochs", "2", "-limit_train_batches", "50", "-limit_val_batches", "1", "-log_every", "10", "-precision", precision)
			checkFashion(t, u, out)
			checkFashionBoard(t, u.run(t), precision)
		})
	}
}

// TestFashionMNISTStopsEarly trains the notebook at a rate that is too high, with 20 batches of
// each epoch, until the validation loss rises. The training ends there, and the test gets the
// weights from before.
func TestFashionMNISTStopsEarly(t *testing.T) {
	tier.Long(t)
	const batches, mostEpochs = 20, 30
	u := newUser(t, ranktest.QuickCompilation)
	out := u.mustSubmit(t, "--local", example(t, "fashion_mnist.ipynb"), "--", "-lr", "0.05", "-schedule.kind", "constant",
		"-max_epochs", strconv.Itoa(mostEpochs), "-limit_train_batches", strconv.Itoa(batches), "-limit_val_batches", "1",
		"-early_stopping.patience", "1", "-checkpoint.monitor", "val/loss")
	all, err := rundir.ReadMetrics(u.run(t))
	ok(t, err)
	var losses []float64
	tested := false
	for _, m := range all {
		if loss, ok := m.Values["val/loss"]; ok {
			losses = append(losses, loss)
			if want := int64(batches * len(losses)); m.Step != want {
				t.Errorf("validation %d is at step %d, want %d", len(losses), m.Step, want)
			}
		}
		if _, ok := m.Values["test/loss"]; ok {
			tested = true
		}
	}
	epochs := len(losses)
	if epochs < 2 || epochs >= mostEpochs {
		t.Fatalf("%d epochs, want from 2 to %d, in\n%s", epochs, mostEpochs-1, out)
	}
	best, last := losses[epochs-2], losses[epochs-1]
	if !slices.IsSortedFunc(losses[:epochs-1], func(a, b float64) int { return cmp.Compare(b, a) }) || last < best {
		t.Errorf("the validation losses are %v; all but the last must fall", losses)
	}
	wantAll(t, out, fmt.Sprintf("training ended after step %d: val/loss has not been better than ", batches*epochs),
		fmt.Sprintf("the weights are those after step %d, the best by val/loss", batches*(epochs-1)))
	if !tested {
		t.Error("there is no test loss")
	}
}

// fashionOnTwoNodes trains the notebook on a part of an epoch on a cluster.
func fashionOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
	out := u.mustSubmit(t, "--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "fashion_mnist.ipynb"),
		"--", "-max_epochs", "2", "-limit_train_batches", "50", "-limit_val_batches", "1", "-log_every", "10")
	checkFashion(t, u, out)
}

// TestFashionMNISTInJupyter executes the notebook in a real Jupyter client.
func TestFashionMNISTInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "fashion_mnist.ipynb", ranktest.QuickCompilation,
		"TRAINER_MAX_EPOCHS=1", "TRAINER_LIMIT_TRAIN_BATCHES=50", "TRAINER_LIMIT_VAL_BATCHES=1")
	last := result.Outputs[len(result.Outputs)-1]
	if got := accuracy(t, last); got < 0.7 {
		t.Errorf("test accuracy %.4f, want at least 0.7:\n%s", got, last)
	}
	checkShown(t, result, 0, 0, 1, 0, 0, 2)
}

// checkFashion checks what a run of the notebook has found: the loss falls, the best weights are
// tested, and rank 0 alone prints and draws.
func checkFashion(t *testing.T, u user, out string) {
	t.Helper()
	if got := accuracy(t, out); got < 0.75 {
		t.Errorf("test accuracy %.4f, want at least 0.75:\n%s", got, out)
	}
	if n := strings.Count(out, "the best by val/accuracy"); n != 1 {
		t.Errorf("the best weights are named %d times, want once:\n%s", n, out)
	}
	run := u.run(t)
	losses := seriesOf(t, run, "", "train/loss")
	checkFall(t, losses, 0.5)
	if len(losses) != 10 {
		t.Errorf("train/loss %v, want 10 values", losses)
	}
	wantAll(t, out, "images: the ") // The edition.
	checkLogged(t, run, "confusion")
	checkLogged(t, run, "mistakes")
	checkRecorded(t, run, 2)
}

// checkFashionBoard reads what TensorBoard shows of a run: the metrics of the run directory, both
// pictures and the hyper-parameters.
func checkFashionBoard(t *testing.T, run rundir.Dir, precision string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(run.TensorBoard(), "*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders for TensorBoard %q, %v; want one", folders, err)
	}
	board := readBack[tensorboardRead](t, "tensorboard", folders[0])
	for _, name := range []string{"train/loss", "train/learning_rate", "val/loss", "val/accuracy", "test/accuracy"} {
		want, points := seriesOf(t, run, "", name), board.Scalars[name]
		if len(points) != len(want) {
			t.Errorf("TensorBoard has %d values of %s, want %d", len(points), name, len(want))
			continue
		}
		for i, point := range points {
			if got := number(t, point[1]); math.Abs(got-want[i]) > 1e-6 {
				t.Errorf("%s at step %v is %g in TensorBoard, and %g in the run directory", name, point[0], got, want[i])
			}
		}
	}
	for _, name := range []string{"confusion", "mistakes"} {
		if n := len(board.Images[name]); n != 1 {
			t.Errorf("TensorBoard has %d pictures %q, want 1", n, name)
		}
	}
	if got := board.HParams["precision"]; got != precision {
		t.Errorf("the precision is %v in TensorBoard, want %s", got, precision)
	}
}
