// Command load times the loading of batches, and prints one JSON line:
//
//	{"images_per_second": 1650, "ms_per_step": 38.8, "data_wait": 0.01, "peak_mb": 250}
//
// -what says what is loaded:
//
//   - step: training steps of a network with a dataset that waits for a while in each batch, as
//     one does that reads from a slow disk
//   - fit: the same by the trainer, whose metric train/data_wait is data_wait: the share of the
//     time in which the device waited for a batch
//   - jpeg: a folder of JPEGs; nothing is trained
//   - indexed and stream: 1,000,000,000 examples, shuffled; nothing is trained. peak_mb is the most
//     memory that the process used, in MB.
//
// Its peer is bench/peers/dataloader.py.
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
	flag.StringVar(&o.what, "what", "step", "step, fit, jpeg, indexed or stream")
	flag.StringVar(&o.folder, "folder", "", "folder of JPEGs, with a folder for each class")
	flag.IntVar(&o.side, "side", 224, "height and width to which the JPEGs are scaled")
	flag.IntVar(&o.batch, "batch", 64, "images in a batch")
	flag.IntVar(&o.steps, "steps", 100, "batches to time")
	flag.IntVar(&o.warmUp, "warm-up", 5, "batches before, with the compilation")
	flag.IntVar(&o.workers, "workers", 0, "batches that are loaded at once; 0: none ahead")
	flag.DurationVar(&o.wait, "wait", 0, "how long a batch of -what step and fit waits")
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
	line := map[string]float64{}
	if o.what == "fit" {
		err = fit(world, o, line)
	} else {
		err = iterate(world, o, line)
	}
	if err != nil {
		return err
	}
	line["images_per_second"] = 1000 * float64(o.batch) / line["ms_per_step"]
	if line["peak_mb"], err = peak(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}

// iterate loads batches by a loop of its own.
func iterate(world *distributed.World, o options, line map[string]float64) error {
	ds, err := o.dataset()
	if err != nil {
		return err
	}
	loader, err := world.Loader(ds, distributed.LoaderOptions{
		BatchSize: o.batch, Shuffle: true, Epochs: 1 << 30, Loading: distributed.Loading{Workers: o.workersHere(), Prefetch: 2 * o.workers},
	})
	if err != nil {
		return err
	}
	defer loader.Close()
	elapsed, err := timed(o, loader, stepOf(world, o.what))
	line["ms_per_step"] = 1000 * elapsed.Seconds() / float64(o.steps)
	return err
}

// workersHere is the number of workers as the loader wants it: -1 for none.
func (o options) workersHere() int {
	if o.workers == 0 {
		return -1
	}
	return o.workers
}

func (o options) dataset() (data.Dataset, error) {
	switch o.what {
	case "step", "fit":
		return slow{o.wait, imageCount}, nil
	case "jpeg":
		return data.ImageFolder(o.folder, data.FolderConfig{Height: o.side, Width: o.side})
	case "indexed":
		return slow{0, billion}, nil
	case "stream":
		return data.FromStream(numbers{}, data.StreamConfig{Examples: billion})
	}
	return nil, fmt.Errorf("-what %s: want step, fit, jpeg, indexed or stream", o.what)
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
	if what != "step" {
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
