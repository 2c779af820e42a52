package checkpoint_test

import (
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
)

func Example() {
	path, err := os.MkdirTemp("", "checkpoints-")
	check(err)
	defer os.RemoveAll(path) //nolint:errcheck // a temporary folder
	dir, err := checkpoint.Open(path, checkpoint.Options{Keep: 2, Metric: "val/loss"})
	check(err)

	// A training run that decreases a single number.
	store := model.NewStore()
	weight := store.VariableWithValue("/dense/weight", float32(0))
	writer := checkpoint.NewWriter(dir)
	for step, loss := range []float64{0.9, 0.3, 0.5, 0.4} {
		check(weight.SetValue(tensors.FromScalar(float32(step) * 10)))
		snapshot, err := writer.Take(store, nil)
		check(err)
		snapshot.Step, snapshot.Metrics["val/loss"] = int64(step), loss
		check(writer.Save(snapshot))
	}
	check(writer.Close())

	all, err := checkpoint.List(path)
	check(err)
	for _, c := range all {
		fmt.Println("step", c.Step, "loss", c.Metrics["val/loss"], "valid", c.Valid())
	}

	// Another process resumes from the newest checkpoint.
	snapshot, err := dir.Latest(func(message string) { log.Print(message) })
	check(err)
	restored := model.NewStore()
	check(snapshot.Restore(restored))
	fmt.Println("weight", restored.VariableWithValue("/dense/weight", float32(0)).MustValue())
	// Output:
	// step 3 loss 0.4 valid true
	// step 2 loss 0.5 valid true
	// step 1 loss 0.3 valid true
	// weight float32(30)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
