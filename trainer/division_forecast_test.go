package trainer_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/forecast"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// TestModelParallelForecast: XLA's compiler for H100 takes the step of divided weights, and each
// GPU has its part of them and of the optimizer's state.
func TestModelParallelForecast(t *testing.T) {
	const parallel, accumulate = "PARALLEL", "ACCUMULATE"
	if ranktest.InRank() {
		n, _ := strconv.Atoi(os.Getenv(parallel))
		batches, _ := strconv.Atoi(os.Getenv(accumulate))
		c := trainer.Config{ModelParallel: n, AccumulateGradBatches: batches, MaxSteps: 2, BatchSize: 16, GradientClipNorm: 1, Loggers: []string{"none"}}
		task := trainer.Supervised(wideNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done())
		tr, err := trainer.New(world(t), c, task)
		if err != nil {
			t.Fatal(err)
		}
		t.Fatalf("the training was not ended: %v", tr.Fit(t.Context(), ranktest.Blobs(145), nil))
	}
	ask := func(nodes, gpus, n, batches int) (*forecast.Answer, string) {
		return askForecastFor(t, forecast.World{Target: "h100", Nodes: nodes, GPUsPerNode: gpus}, parallel+"="+strconv.Itoa(n), accumulate+"="+strconv.Itoa(batches))
	}
	whole, out := ask(1, 4, 1, 1)
	if whole == nil || whole.Error != "" {
		t.Fatalf("%+v\n%s", whole, out)
	}
	type parts struct{ n, batches int }
	for _, test := range tier.Fewer([]parts{{4, 1}, {2, 3}, {2, 1}}, 1) {
		got, out := ask(1, 4, test.n, test.batches)
		if got == nil || got.Error != "" {
			t.Fatalf("%d parts: %+v\n%s", test.n, got, out)
		}
		t.Logf("%d parts: %+v, whole: %+v; reduced: %d and %d; FLOPs: %g and %g", test.n, got.Memory, whole.Memory, got.Reduced, whole.Reduced, got.FLOPs, whole.FLOPs)
		n := int64(test.n)
		if least := whole.Memory.Parameters / n; got.Memory.Parameters < least || got.Memory.Parameters > least+40_000 {
			t.Errorf("%d parts: %d bytes of weights, whole: %d", n, got.Memory.Parameters, whole.Memory.Parameters)
		}
		if least := whole.Memory.Optimizer / n; test.batches == 1 && (got.Memory.Optimizer < least || got.Memory.Optimizer > least+80_000) {
			t.Errorf("%d parts: %d bytes of the optimizer, whole: %d", n, got.Memory.Optimizer, whole.Memory.Optimizer)
		}
		if got.Batch != whole.Batch || len(got.Collectives) == 0 || got.Reduced == 0 || got.FLOPs < whole.FLOPs*0.99 || got.FLOPs > whole.FLOPs*1.01 {
			t.Errorf("%d parts: %+v, whole: %+v", n, got, whole)
		}
	}
	for _, refused := range []struct {
		nodes, gpus, n int
		want           string
	}{
		{2, 4, 2, "the forecast is for 8 x h100 on 2 nodes: XLA divides weights only among the GPUs of one process: give --nodes=1"},
		{1, 4, 3, "the forecast is for 4 x h100 on one node: their number must be a multiple of 3"},
	} {
		if got, out := ask(refused.nodes, refused.gpus, refused.n, 1); got != nil || !strings.Contains(out, refused.want) {
			t.Errorf("%+v, want %q:\n%s", got, refused.want, out)
		}
	}
}
