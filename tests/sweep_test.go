package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/submit/result"
	"gonbatch/tests/cluster"
)

// TestSweep trains the notebook with three rates on a part of an epoch, on two ranks. Each rate has
// its metrics, and the best one's mistakes are drawn.
func TestSweep(t *testing.T) {
	tier.Long(t)
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
	for training, part := range map[string]float64{"rate-1e-5": 0.99, "rate-2e-3": 0.5} {
		losses := seriesOf(t, run, training, "train/loss")
		checkFall(t, losses, part)
		if len(losses) != 3 {
			t.Errorf("%s: train/loss %v, want 3 values", training, losses)
		}
	}
	compared := result.Compare(result.At(run.Path()))
	if got := compared.Columns; len(compared.Rows) != 2 || !slices.Equal(got[:3], []string{"run", "training", "learning_rate"}) {
		t.Errorf("the training runs differ in\n%s", compared)
	}
	checkTable(t, out, map[string]string{"rate-1e-5": "1e-05", "rate-2e-3": "0.002"})
	checkBestRate(t, out, "0.002")
	checkRecorded(t, run, 2)
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

// sweepOnTwoNodes trains the notebook with two rates on a cluster. The job compares them.
func sweepOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
	out := u.mustSubmit(t, "--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "mnist_sweep.ipynb"),
		"--", "-rates", "1e-5, 2e-3", "-limit_train_batches", "20", "-limit_val_batches", "1")
	checkTable(t, out, map[string]string{"rate-1e-5": "1e-05", "rate-2e-3": "0.002"})
	checkBestRate(t, out, "0.002")
	checkRecorded(t, u.run(t), 2)
}

// TestSweepInJupyter executes the notebook in a real Jupyter client, on a small part of the images.
// It submits its own job, and compares what that job has tried.
func TestSweepInJupyter(t *testing.T) {
	tier.Long(t)
	u := newUser(t, ranktest.QuickCompilation, "TRAINER_LIMIT_TRAIN_BATCHES=20", "TRAINER_LIMIT_VAL_BATCHES=1")
	result := u.execute(t, u.copyExample(t, "mnist_sweep.ipynb"))
	if result.Error != "" || len(result.Outputs) != 11 {
		t.Fatalf("%d code cells, want 11: %s\n%s", len(result.Outputs), result.Error, result.Log)
	}
	trained, compared := result.Outputs[4], result.Outputs[10]
	wantAll(t, trained, "rate-1e-4: epoch 1/1  step 20/20", "rate-1e-3: epoch 1/1  step 20/20", "rate-1e-2: epoch 1/1  step 20/20", "the best is rate-1e-3\n", "macro F1 ")
	if got := accuracy(t, trained); got < 0.45 {
		t.Errorf("test accuracy %.4f, want at least 0.45; guessing has 0.1:\n%s", got, trained)
	}
	wantAll(t, result.Outputs[6], "Only jobs have a run directory.")
	checkTable(t, read(t, u.run(t).RankLog(0))+compared, map[string]string{"rate-1e-4": "0.0001", "rate-1e-3": "0.001", "rate-1e-2": "0.01"})
	checkBestRate(t, compared, "0.001")
	checkShown(t, result, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1)
}

// triedLine matches what the notebook prints when it has trained with a rate.
var triedLine = regexp.MustCompile(`(?m)^rate (\S+): val/accuracy (\S+), val/loss (\S+)$`)

// checkTable checks that the notebook's table has a row for each training run, with its learning
// rate and the metrics that the training run has printed.
func checkTable(t *testing.T, out string, rates map[string]string) {
	t.Helper()
	printed := map[string][2]string{}
	for _, match := range triedLine.FindAllStringSubmatch(out, -1) {
		printed["rate-"+match[1]] = [2]string{match[2], match[3]}
	}
	header := regexp.MustCompile(`(?m)^run +training +learning_rate +.*$`).FindString(out)
	columns := strings.Fields(header)
	accuracy, loss := slices.Index(columns, "val/accuracy"), slices.Index(columns, "val/loss")
	if accuracy < 0 || loss < 0 {
		t.Fatalf("the columns of the table are %q, in\n%s", columns, out)
	}
	for name, rate := range rates {
		row := cellsBelow(header, regexp.MustCompile(`(?m)^\S+ +`+name+` +\d.*$`).FindString(out))
		if len(row) <= max(accuracy, loss) || row[2] != rate {
			t.Errorf("%s has the row %q, want the learning rate %s, in\n%s", name, row, rate, out)
			continue
		}
		for i, column := range []int{accuracy, loss} {
			want := printed[name][i]
			if got := rounded(t, row[column], want); got != want {
				t.Errorf("%s has %s %s in the table; the training run has printed %s", name, columns[column], row[column], want)
			}
		}
	}
}

// cellsBelow returns the cells of a row of an aligned table, some of which may be empty.
func cellsBelow(header, row string) (cells []string) {
	starts := regexp.MustCompile(`\S+`).FindAllStringIndex(header, -1)
	for i, start := range starts {
		end := len(row)
		if i+1 < len(starts) {
			end = min(end, starts[i+1][0])
		}
		cells = append(cells, strings.TrimSpace(row[min(start[0], end):end]))
	}
	return cells
}

// rounded returns a number with as many decimals as another one has.
func rounded(t *testing.T, text, other string) string {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Errorf("a metric is %q: %v", text, err)
	}
	_, decimals, _ := strings.Cut(other, ".")
	return strconv.FormatFloat(value, 'f', len(decimals), 64)
}

// checkBestRate checks that one process has named the best rate.
func checkBestRate(t *testing.T, out, rate string) {
	t.Helper()
	all := regexp.MustCompile(`(?m)^of \d rates, (\S+) is the best: val/loss `).FindAllStringSubmatch(out, -1)
	if len(all) != 1 || all[0][1] != rate {
		t.Errorf("the best rates are %q, want %s once, in\n%s", all, rate, out)
	}
}
