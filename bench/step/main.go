// Command step times the training step of the MNIST network on random images, and prints one JSON
// line from rank 0:
//
//	{"images_per_second": 4200, "ms_per_step": 30.4, "ranks": 2, "devices": 1, "batch": 64}
//
// It is started by mpirun, each rank bound to its cores, and compared with the peers in
// bench/peers, which do the same in Python.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/models"
)

func main() {
	batch := flag.Int("batch", 64, "images in a step, for each rank")
	steps := flag.Int("steps", 100, "steps to time")
	warmUp := flag.Int("warm-up", 5, "steps before, with the compilation")
	flag.Parse()
	if err := run(*batch, *steps, *warmUp); err != nil {
		log.Fatal(err)
	}
}

func run(batch, steps, warmUp int) error {
	world, err := distributed.Init()
	if err != nil {
		return err
	}
	defer world.Close() //nolint:errcheck // measured; the process ends
	adam := world.Optimizer(optimizer.Adam().LearningRate(1e-3).Done())
	trainer := train.NewTrainer(world.Backend(), model.NewStore(), models.MNIST, loss.SparseCategoricalCrossEntropyLogits, adam, nil, nil)

	images, labels := randomBatch(batch, uint64(world.Rank()))
	var start time.Time
	for step := range warmUp + steps {
		if step == warmUp {
			start = time.Now()
		}
		metrics, err := trainer.TrainStep(train.Batch{
			Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, batch, 28, 28, 1)},
			Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, batch, 1)},
		})
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		for _, m := range metrics {
			m.MustFinalizeAll()
		}
	}
	if !world.IsMain() {
		return nil
	}
	seconds := time.Since(start).Seconds()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"images_per_second": float64(batch*steps*world.Size()) / seconds,
		"ms_per_step":       1000 * seconds / float64(steps),
		"ranks":             world.Size(),
		"devices":           world.Devices(),
		"batch":             batch,
	})
}

func randomBatch(n int, seed uint64) (images []float32, labels []int32) {
	rng := rand.New(rand.NewPCG(1, seed))
	images, labels = make([]float32, n*28*28), make([]int32, n)
	for i := range images {
		images[i] = rng.Float32()
	}
	for i := range labels {
		labels[i] = int32(i % 10)
	}
	return images, labels
}
