package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/submit/result"
	"gonbatch/tests/page"
)

// TestTourCells trains the MNIST notebook twice, with other hyper-parameters in its code, and then
// runs the cells of docs/tour.md in the real kernel, beside the runs. Only the cell with %result
// gets the name of a run, since this session has submitted none.
func TestTourCells(t *testing.T) {
	u := newUser(t, "TRAINER_LIMIT_TEST_BATCHES=4")
	u.trainMNIST(t, "BatchSize: 32, MaxSteps: 20, GradientClipNorm: 0.5", "optimizer.Adam().LearningRate(2e-3).Done()", "-lr", "7")
	u.trainMNIST(t, "BatchSize: 32, MaxSteps: 10", "trainer.SGD{LearningRate: 0.05, Momentum: 0.9}")
	runs := result.Find(filepath.Join(u.folder, "runs", "mnist-*"))
	if len(runs) != 2 {
		t.Fatalf("runs %v, want 2", runs)
	}
	checkComparison(t, result.Compare(runs...).String())

	var cells []string
	for _, block := range page.Cells(t, "docs/tour.md") {
		cells = append(cells, strings.Replace(block.Script, "%result as", "%result "+runs[1].Name()+" as", 1))
	}
	shown := u.execute(t, u.write(t, "tour.ipynb", cells...))
	if shown.Error != "" || len(shown.Outputs) != 3 {
		t.Fatalf("%d outputs: %s\n%s", len(shown.Outputs), shown.Error, shown.Log)
	}
	wantAll(t, shown.Outputs[0], "60000 images")
	wantAll(t, shown.Outputs[1], "run directory: "+runs[1].Dir(), "0.")
	checkComparison(t, shown.Outputs[2])
}

// trainMNIST trains a copy of the notebook whose code has these settings and this optimizer.
func (u user) trainMNIST(t *testing.T, settings, optimizer string, flags ...string) {
	t.Helper()
	text := read(t, mnist(t))
	for old, replacement := range map[string]string{
		`BatchSize: *batchSize,`: settings + ",", `optimizer.Adam().LearningRate(*rate).Done()`: optimizer,
	} {
		changed := strings.Replace(text, old, replacement, 1)
		if changed == text {
			t.Fatalf("the notebook has no %s", old)
		}
		text = changed
	}
	if err := os.WriteFile(filepath.Join(u.folder, "mnist.ipynb"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	u.mustSubmit(t, append([]string{"--local", "mnist.ipynb", "--"}, flags...)...)
}

// comparison matches the table of the two runs, of which the first got a flag that it does not use.
var comparison = regexp.MustCompile(`^run +-lr +(.*) test/accuracy +test/loss +train/loss\n` +
	`mnist-\S+ +7 +(.*) 0\.\d+ +\d\S* +\d\S*\n` +
	`mnist-\S+ +1e-3 +(.*) 0\.\d+ +\d\S* +\d\S*\n$`)

// checkComparison checks which hyper-parameters a table has.
func checkComparison(t *testing.T, table string) {
	t.Helper()
	match := comparison.FindStringSubmatch(table)
	if match == nil {
		t.Fatalf("the table is\n%s", table)
	}
	names := strings.Fields(match[1])
	if got := strings.Join(names[:5], " "); got != "gradient_clip_norm learning_rate max_steps optimizer optimizer.adamax" {
		t.Errorf("the hyper-parameters are %s", match[1])
	}
	wantAll(t, match[2], "0.5", "0.002", "20", "optimizer.adam", "0.999")
	wantAll(t, match[3], "0.05", "10", "trainer.SGD", "0.9")
	for _, same := range []string{"batch_size", "seed", "dataset"} {
		if strings.Contains(match[1], same+" ") {
			t.Errorf("%s does not differ, but has a column:\n%s", same, table)
		}
	}
}
