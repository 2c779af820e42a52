// Command first trains the MNIST network for one step in a new process, and prints one JSON line:
//
//	{"seconds": 3.1, "compile_seconds": 2.6, "compiled": 3}
//
// seconds is the time since the process started; compile_seconds is the time that XLA took to
// compile or load programs; compiled is the number of programs that it compiled.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
	"gonbatch/models"
)

// batch is the number of images in the step.
const batch = 64

func main() {
	if err := run(time.Now()); err != nil {
		log.Fatal(err)
	}
}

func run(start time.Time) (err error) {
	world, err := distributed.Init()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	adam := world.Optimizer(optimizer.Adam().LearningRate(1e-3).Done())
	trainer := train.NewTrainer(world.Backend(), model.NewStore(), models.MNIST, loss.SparseCategoricalCrossEntropyLogits, adam, nil, nil)
	metrics, err := trainer.TrainStep(train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, batch*28*28), batch, 28, 28, 1)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]int32, batch), batch, 1)},
	})
	if err != nil {
		return err
	}
	for _, m := range metrics {
		m.MustFinalizeAll()
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"seconds":         time.Since(start).Seconds(),
		"compile_seconds": pjrt.CompileTime().Seconds(),
		"compiled":        pjrt.Compilations(),
	})
}
