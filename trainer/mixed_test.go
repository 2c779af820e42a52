package trainer_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestMixedPrecision: it learns, and the store has the weights, the statistics and the optimizer's
// state in single precision.
func TestMixedPrecision(t *testing.T) {
	for _, name := range []string{"bf16-mixed", "16-mixed"} {
		tr, out := newTrainer(t, trainer.Config{MaxEpochs: 4, BatchSize: 12, Precision: name}, blobTask(smallNet))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(50)); err != nil {
			t.Fatal(err)
		}
		for v := range tr.Store().IterVariables() {
			t.Log(v.Path(), v.Shape())
			if v.DType().IsFloat() && v.DType() != dtypes.Float32 {
				t.Errorf("%s: %s is %s", name, v.Path(), v.DType())
			}
		}
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(103))
		if err != nil || metrics["test/accuracy"] < 0.8 {
			t.Errorf("%s: %v, %v", name, metrics, err)
		}
		t.Log(out)
	}
}
