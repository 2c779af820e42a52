package tests

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// mostLines is how many lines of code a classifier of image folders may need, with augmentation,
// early stopping, best weights and fine-tuning: about as many as in other frameworks. The code that
// draws doesn't count.
const mostLines = 100

// TestFineTune trains the notebook's two phases for a few epochs, on one rank and on two. Each
// phase tests its best weights; the second must learn from only a few images.
func TestFineTune(t *testing.T) {
	tier.Long(t)
	for _, tasks := range []string{"1", "2"} {
		t.Run(tasks+" ranks", func(t *testing.T) {
			u := newUser(t, ranktest.QuickCompilation)
			checkFineTune(t, u, u.mustSubmit(t, "--local", "--tasks", tasks, example(t, "finetune.ipynb"), "--", "-max_epochs", "8"))
		})
	}
}

// fineTuneOnTwoNodes trains the notebook on a cluster.
func fineTuneOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
	checkFineTune(t, u, u.mustSubmit(t, "--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "finetune.ipynb"), "--", "-max_epochs", "8"))
}

// checkFineTune checks what a run of the notebook has found and drawn.
func checkFineTune(t *testing.T, u user, out string) {
	t.Helper()
	for _, phase := range []string{"shapes", "others"} {
		if !strings.Contains(out, phase+": the weights are those after step ") {
			t.Errorf("no best weights of %s in\n%s", phase, out)
		}
	}
	accuracies := regexp.MustCompile(`(?m)^accuracy (\d\.\d+), macro F1 \d`).FindAllStringSubmatch(out, -1)
	if len(accuracies) != 2 {
		t.Fatalf("%d accuracies, want 2, in\n%s", len(accuracies), out)
	}
	for i, least := range []float64{0.9, 0.8} { // The second phase has 32 images to test with.
		if value, err := strconv.ParseFloat(accuracies[i][1], 64); err != nil || value < least {
			t.Errorf("an accuracy of %s, want at least %g:\n%s", accuracies[i][1], least, out)
		}
	}
	run := u.run(t)
	for _, phase := range []string{"shapes", "others"} {
		checkFall(t, seriesOf(t, run, phase, "val/loss"), 0.5)
	}
	if all := seriesOf(t, run, "others", "val/accuracy"); all[0] > 0.97 {
		t.Errorf("the accuracies of the second phase are %v: its task is so easy that it shows nothing", all)
	}
	checkNamed(t, run, "shapes", "examples")
	checkNamed(t, run, "others", "examples", "phases")
	checkRecorded(t, run, 3)
}

// TestFineTuneInJupyter executes the notebook in a real Jupyter client.
func TestFineTuneInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "finetune.ipynb", ranktest.QuickCompilation)
	last := result.Outputs[len(result.Outputs)-1]
	if n := strings.Count(last, "macro F1 "); n != 2 || !strings.Contains(last, "diamond") {
		t.Errorf("%d confusion matrices, want 2:\n%s", n, last)
	}
	checkFall(t, printedLosses(t, last, "shapes: "), 0.5)
	checkShown(t, result, 0, 0, 0, 0, 3)
}

func TestFineTuneIsShort(t *testing.T) {
	notebook, err := nbformat.Read(example(t, "finetune.ipynb"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, cell := range notebook.Cells {
		if cell.Type != nbformat.Code || cell.ID == "pictures" {
			continue
		}
		for line := range strings.Lines(cell.Source) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	if lines == 0 || lines > mostLines {
		t.Errorf("the notebook has %d lines of code, want at most %d", lines, mostLines)
	}
}
