package tests

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"gonbatch/internal/rundir"
)

// seriesOf returns the values of a metric of a training run, in the order of the steps. The name of
// the only training run may be left out.
func seriesOf(t *testing.T, run rundir.Dir, training, metric string) (values []float64) {
	t.Helper()
	all, err := rundir.ReadMetrics(run)
	ok(t, err)
	for _, m := range all {
		if value, has := m.Values[metric]; has && (training == "" || m.Training == training) {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s has no %s of the training run %q", run.Path(), metric, training)
	}
	return values
}

// printedLoss matches a progress line such as "epoch 1/2  step 20/938  loss 0.5123".
var printedLoss = regexp.MustCompile(`(?m)(?:^|>|\r)([^>\r\n]*)epoch \d+/\d+  step \d+/\d+  loss (\S+)`)

// printedLosses returns the training losses on the progress lines that begin with a prefix.
func printedLosses(t *testing.T, out, prefix string) (losses []float64) {
	t.Helper()
	for _, match := range printedLoss.FindAllStringSubmatch(out, -1) {
		loss, err := strconv.ParseFloat(match[2], 64)
		ok(t, err)
		if match[1] == prefix {
			losses = append(losses, loss)
		}
	}
	return losses
}

// checkFall checks that losses are numbers, and that the last one is at most a part of the first.
func checkFall(t *testing.T, losses []float64, part float64) {
	t.Helper()
	checkFinite(t, losses)
	if n := len(losses); n < 2 || !(losses[n-1] <= part*losses[0]) {
		t.Errorf("the losses are %v, want at least two, the last at most %g of the first", losses, part)
	}
}

// checkFinite checks that values are finite.
func checkFinite(t *testing.T, values []float64) {
	t.Helper()
	for _, value := range values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			t.Errorf("the values are %v, want finite ones", values)
			return
		}
	}
}
