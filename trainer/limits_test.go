package trainer_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestEvaluationLimits: validations, tests and predictions each have a limit of their own, in
// batches of each rank.
func TestEvaluationLimits(t *testing.T) { everywhere(t, testEvaluationLimits) }

func testEvaluationLimits(t *testing.T) {
	const batch, examples = 4, 60
	for _, c := range []trainer.Config{
		{Name: "none"},
		{Name: "val", LimitValBatches: 1},
		{Name: "test", LimitTestBatches: 2},
		{Name: "predict", LimitPredictBatches: 3},
		{Name: "all", LimitValBatches: 3, LimitTestBatches: 1, LimitPredictBatches: 2},
		{Name: "too many", LimitTestBatches: 99, LimitPredictBatches: 99},
		{Name: "dev run", FastDevRun: true, LimitTestBatches: 5},
	} {
		c.EvalBatchSize, c.Loggers, c.Seed = batch, []string{"none"}, 1
		tr, _ := newTrainer(t, c, blobTask(plainNet))
		c = tr.Config()
		used := func(limit int) int {
			if all := limit * batch * tr.World().Size(); 0 < all && all < examples {
				return all
			}
			return examples
		}
		all, _ := newTrainer(t, trainer.Config{EvalBatchSize: batch, Loggers: c.Loggers, Seed: 1}, blobTask(plainNet))
		for _, stage := range []string{"val", "test"} {
			limit := map[string]int{"val": c.LimitValBatches, "test": c.LimitTestBatches}[stage]
			got, err := evaluate(t, tr, stage, ranktest.Blobs(examples))
			want, wantErr := evaluate(t, all, stage, data.First(ranktest.Blobs(examples), used(limit)))
			if err != nil || wantErr != nil || got != want {
				t.Errorf("limits of %s: %s: the loss is %g, want that of %d examples, %g; %v, %v", c.Name, stage, got, used(limit), want, err, wantErr)
			}
		}
		if c.FastDevRun && used(c.LimitPredictBatches) != batch*tr.World().Size() {
			t.Errorf("in a dev run, %d batches are predicted", c.LimitPredictBatches)
		}
		checkPredicted(t, tr, examples, used(c.LimitPredictBatches))
	}
}

func evaluate(t *testing.T, tr *trainer.Trainer, stage string, ds data.Dataset) (loss float64, err error) {
	measure := map[string]func(*trainer.Trainer) (trainer.Metrics, error){
		"val":  func(tr *trainer.Trainer) (trainer.Metrics, error) { return tr.Validate(t.Context(), ds) },
		"test": func(tr *trainer.Trainer) (trainer.Metrics, error) { return tr.Test(t.Context(), ds) },
	}
	metrics, err := measure[stage](tr)
	return metrics[stage+"/loss"], err
}

// checkPredicted checks how many examples each way to predict uses.
func checkPredicted(t *testing.T, tr *trainer.Trainer, examples, want int) {
	t.Helper()
	own, gathered := []float64{0}, 0
	err := tr.Predict(t.Context(), ranktest.Blobs(examples), func(indices []int, _ []*tensors.Tensor) error { own[0] += float64(len(indices)); return nil })
	if err := tr.World().Together(err); err != nil {
		t.Fatal(err)
	}
	if err := tr.World().AllReduceSum(own); err != nil {
		t.Fatal(err)
	}
	err = tr.PredictOnMain(t.Context(), ranktest.Blobs(examples), func(indices []int, _ []*tensors.Tensor) error { gathered += len(indices); return nil })
	if err != nil {
		t.Fatal(err)
	}
	confusion, err := tr.Confusion(t.Context(), ranktest.Blobs(examples), nil)
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for class := range confusion.Counts {
		counted += confusion.Examples(class)
	}
	if int(own[0]) != want || counted != want || tr.World().IsMain() && gathered != want {
		t.Errorf("limits of %s: %g, %d and %d examples are predicted, want %d", tr.Config().Name, own[0], gathered, counted, want)
	}
}
