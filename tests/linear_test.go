package tests

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// TestLinearRegression trains the notebook on one rank, on two, and on four devices of one rank.
// All must find the true weights, with the same validation loss after each epoch.
func TestLinearRegression(t *testing.T) {
	tier.Long(t)
	var single []float64
	for _, flags := range [][]string{{"--tasks", "1"}, {"--tasks", "2"}, {"--devices", "4"}} {
		u := newUser(t, ranktest.QuickCompilation)
		out := u.mustSubmit(t, append([]string{"--local", example(t, "linear_regression.ipynb")}, flags...)...)
		losses := checkRegression(t, u, out, 8)
		if single == nil {
			single = losses
		}
		checkSame(t, fmt.Sprintf("with %q", flags), losses, single)
		if flags[0] == "--devices" {
			wantAll(t, read(t, u.run(t).RankLog(0)), "4 cpu devices on ")
		}
		checkRates(t, seriesOf(t, u.run(t), "", "train/learning_rate"), 0.03, 0.003, 0.0003)
		checkRecorded(t, u.run(t), 1)
	}
}

// checkRates checks that a learning rate has taken these values, one after the other.
func checkRates(t *testing.T, logged []float64, want ...float64) {
	t.Helper()
	rates := slices.CompactFunc(slices.Clone(logged), func(a, b float64) bool { return a == b })
	if !slices.EqualFunc(rates, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-4*b }) {
		t.Errorf("the learning rates are %v, want %v", rates, want)
	}
}

// linearOnTwoNodes trains the notebook for a few epochs on a cluster. Two nodes must have the same
// validation losses as one rank.
func linearOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
	out := u.mustSubmit(t, "--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "linear_regression.ipynb"), "--", "-max_epochs", "4")
	losses := checkRegression(t, u, out, 4)
	checkRates(t, seriesOf(t, u.run(t), "", "train/learning_rate"), 0.03, 0.003)
	u = newUser(t, ranktest.QuickCompilation)
	out = u.mustSubmit(t, "--local", "--tasks", "1", example(t, "linear_regression.ipynb"), "--", "-max_epochs", "4")
	checkSame(t, "on two nodes", losses, checkRegression(t, u, out, 4))
	run := u.run(t).Path()
	if out, err := u.submit(t, "resume", run, "--", "-max_epoch", "5"); err == nil || !strings.Contains(out, "did you mean -max_epochs?") { // A warning, then the program's error.
		t.Errorf("resumed with a flag that isn't there: %v\n%s", err, out)
	}
	wantAll(t, u.mustSubmit(t, "resume", run, "--", "-max_epochs", "5"), "goes on from its newest checkpoint with -max_epochs 5", "training resumes after", "epoch 5")
	if _, err := u.submit(t, "resume", run, "-p", "x=1"); err == nil {
		t.Error("resume takes parameters")
	}
}

// checkSame compares validation losses with those of one rank.
func checkSame(t *testing.T, where string, losses, single []float64) {
	t.Helper()
	for i, loss := range losses {
		if !(math.Abs(loss-single[i]) <= 1e-4*single[i]) {
			t.Errorf("epoch %d %s: val/loss %g, on one rank %g", i+1, where, loss, single[i])
		}
	}
}

// TestLinearRegressionInJupyter executes the notebook in a real Jupyter client.
func TestLinearRegressionInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "linear_regression.ipynb", ranktest.QuickCompilation)
	last := result.Outputs[len(result.Outputs)-1]
	checkWeights(t, last)
	checkShown(t, result, 0, 0, 0, 0, 1)
}

// checkRegression checks what a run of the notebook has found, and returns the validation losses
// after each epoch.
func checkRegression(t *testing.T, u user, out string, epochs int) (losses []float64) {
	t.Helper()
	checkWeights(t, out)
	run := u.run(t)
	losses = seriesOf(t, run, "", "val/loss")
	if len(losses) != epochs || losses[0] < losses[epochs-1] || losses[epochs-1] > 0.0115 || losses[epochs-1] < 0.009 {
		t.Errorf("val/loss %v, want %d values that fall to the noise's variance, 0.01", losses, epochs)
	}
	pictures, err := filepath.Glob(filepath.Join(run.Curves(), "images", "predictions", "*.png"))
	if err != nil || len(pictures) != 1 {
		t.Fatalf("pictures %q, %v", pictures, err)
	}
	checkPlot(t, pictures[0])
	return losses
}

// learnedWeight matches a line of the notebook's result.
var learnedWeight = regexp.MustCompile(`(?:weight \d|bias): learned ([-+.\d]+), true ([-+.\d]+)`)

// checkWeights checks that rank 0 alone printed the weights and the bias, and that they are right.
func checkWeights(t *testing.T, out string) {
	t.Helper()
	lines := learnedWeight.FindAllStringSubmatch(out, -1)
	if len(lines) != 11 || lines[10][2] != "+3.000" {
		t.Fatalf("%d weights, want 10 and the bias, in\n%s", len(lines), out)
	}
	for _, line := range lines {
		learned, errLearned := strconv.ParseFloat(line[1], 64)
		truth, errTruth := strconv.ParseFloat(line[2], 64)
		if errLearned != nil || errTruth != nil || math.Abs(learned-truth) > 0.01 {
			t.Errorf("%s", strings.TrimSpace(line[0]))
		}
	}
}

// checkPlot checks a plot of predictions against measurements: there are dots and a diagonal, and
// nothing in the corners where the two would be far apart.
func checkPlot(t *testing.T, path string) {
	t.Helper()
	picture := readPNG(t, path)
	size := picture.Bounds().Size()
	part := func(x0, y0, x1, y1 float64) image.Rectangle {
		return image.Rect(int(x0*float64(size.X)), int(y0*float64(size.Y)), int(x1*float64(size.X)), int(y1*float64(size.Y)))
	}
	if dots := dark(picture, part(0.4, 0.35, 0.7, 0.65)); dots < 100 {
		t.Errorf("%s: %d dark points in the middle", path, dots)
	}
	for _, corner := range []image.Rectangle{part(0.15, 0.15, 0.3, 0.3), part(0.85, 0.7, 0.95, 0.8)} {
		if dots := dark(picture, corner); dots > 0 {
			t.Errorf("%s: %d dark points in %v, far from the diagonal", path, dots, corner)
		}
	}
}

// dark counts the dark points in a part of a picture.
func dark(picture image.Image, part image.Rectangle) (n int) {
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			if color.GrayModel.Convert(picture.At(x, y)).(color.Gray).Y < 120 {
				n++
			}
		}
	}
	return n
}
