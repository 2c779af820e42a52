// Command load times the loading of batches, and prints one JSON line:
//
//	{"images_per_second": 1650, "ms_per_step": 38.8}
//
// With -what step it takes training steps of a network with a dataset that waits for a while in
// each batch, as one does that reads from a slow disk; with -what jpeg it loads a folder of JPEGs
// and trains nothing. Its peer is bench/peers/dataloader.py.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/data"
	"gonbatch/distributed"
	"gonbatch/models"
)

type options struct {
	what, folder                        string
	batch, steps, warmUp, workers, side int
	wait                                time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.what, "what", "step", "step or jpeg")
	flag.StringVar(&o.folder, "folder", "", "folder of JPEGs, with a folder for each class")
	flag.IntVar(&o.side, "side", 224, "height and width to which the JPEGs are scaled")
	flag.IntVar(&o.batch, "batch", 64, "images in a batch")
	flag.IntVar(&o.steps, "steps", 100, "batches to time")
	flag.IntVar(&o.warmUp, "warm-up", 5, "batches before, with the compilation")
	flag.IntVar(&o.workers, "workers", 0, "batches that are loaded at once; 0: none ahead")
	flag.DurationVar(&o.wait, "wait", 0, "how long a batch of -what step waits")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

func run(o options) (err error) {
	world, err := distributed.Init()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	workers := o.workers
	if workers == 0 {
		workers = -1
	}
	var ds data.Dataset = slow{o.wait}
	if o.what == "jpeg" {
		if ds, err = data.ImageFolder(o.folder, data.FolderConfig{Height: o.side, Width: o.side}); err != nil {
			return err
		}
	}
	loader, err := world.Loader(ds, distributed.LoaderOptions{
		BatchSize: o.batch, Shuffle: true, Epochs: 1 << 30, Loading: distributed.Loading{Workers: workers, Prefetch: 2 * o.workers},
	})
	if err != nil {
		return err
	}
	defer loader.Close()
	elapsed, err := timed(o, loader, stepOf(world, o.what))
	if err != nil {
		return err
	}
	each := elapsed.Seconds() / float64(o.steps)
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{"images_per_second": float64(o.batch) / each, "ms_per_step": 1000 * each})
}

// timed returns how long the steps after the warm-up take.
func timed(o options, l distributed.Loader, step func(train.Batch) error) (time.Duration, error) {
	var began time.Time
	for done := 0; ; {
		for batch, err := range l.Iter() {
			if err != nil {
				return 0, err
			}
			if err := step(batch); err != nil {
				return 0, err
			}
			if done++; done == o.warmUp {
				began = time.Now()
			}
			if done == o.warmUp+o.steps {
				return time.Since(began), nil
			}
		}
	}
}

// stepOf returns a training step, or nothing.
func stepOf(w *distributed.World, what string) func(train.Batch) error {
	if what == "jpeg" {
		return func(batch train.Batch) error { return batch.Finalize() }
	}
	t := train.NewTrainer(w.Backend(), model.NewStore(), models.MNIST, loss.SparseCategoricalCrossEntropyLogits, w.Optimizer(optimizer.Adam().LearningRate(1e-3).Done()), nil, nil)
	return func(batch train.Batch) error {
		metrics, err := t.TrainStep(batch)
		if err != nil {
			return err
		}
		if last := tensors.ToScalar[float32](metrics[0]); last != last {
			return fmt.Errorf("the loss is %v", last)
		}
		for _, m := range metrics {
			m.MustFinalizeAll()
		}
		return nil
	}
}

// slow is a dataset of black images whose batches take a while.
type slow struct{ wait time.Duration }

const imageCount = 6400

func (slow) Name() string { return "slow" }
func (slow) Len() int     { return imageCount }

func (s slow) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	time.Sleep(s.wait)
	numbers := make([]int32, len(indices))
	for i, index := range indices {
		numbers[i] = int32(index % 10)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, len(indices)*28*28), len(indices), 28, 28, 1)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(numbers, len(indices), 1)}, nil
}
