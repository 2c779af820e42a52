// Command train times whole training loops on random images. Rank 0 prints one JSON line:
//
//	{"images_per_second": 1650, "ms_per_step": 38.8, "cpu_ms_per_step": 38.1, "stall_ms": 0, "extra_ms": 0}
//
// There are three loops. -loop trainer is package trainer, with all its loggers in a run directory.
// -loop bare has the same model, dataset and loader in a hand-written loop over World.TrainSteps.
// -loop both alternates between the two step by step, so that other work on the machine slows both
// down alike; the line then also has the median and the mean of the differences, as over_ms and
// mean_over_ms.
//
// With -checkpoint-every, the trainer takes checkpoints, and the line has the cost of each:
// stall_ms is how long the training stands still; extra_ms is how much longer all updates together
// take until the checkpoint is on disk, including the stall.
//
// mpirun starts it, with each rank on its own core. It is compared with the peer in bench/peers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/distributed"
	"gonbatch/internal/rundir"
	"gonbatch/trainer"
)

type options struct {
	loop, model, dir                string
	batch, steps, warmUp, saveEvery int
}

func main() {
	var o options
	flag.StringVar(&o.loop, "loop", "trainer", "trainer, bare or both")
	flag.StringVar(&o.model, "model", "cnn", "cnn; dense: 500 MB of weights; linear: next to nothing")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "folder for the run directory")
	flag.IntVar(&o.batch, "batch", 64, "images in a step, for each rank")
	flag.IntVar(&o.steps, "steps", 100, "steps to time")
	flag.IntVar(&o.warmUp, "warm-up", 5, "steps before, with the compilation")
	flag.IntVar(&o.saveEvery, "checkpoint-every", 0, "steps between checkpoints (0: none)")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

func run(o options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "bench-train-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := os.Setenv(rundir.EnvDir, dir); err != nil {
		return err
	}
	world, err := distributed.Init()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	clock := &clock{first: o.warmUp, last: o.warmUp + o.steps}
	switch o.loop {
	case "bare":
		err = bare(world, o, clock)
	case "trainer":
		err = withTrainer(world, o, clock)
	case "both":
		err = inTurns(world, o, clock)
	default:
		err = fmt.Errorf("-loop %s: want trainer, bare or both", o.loop)
	}
	if err != nil || !world.IsMain() {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(clock.result(o.batch*world.Size(), o.saveEvery))
}

// bare is the loop that a user of package distributed writes.
func bare(w *distributed.World, o options, c *clock) error {
	for err := range bareSteps(w, o) {
		if err != nil || c.step() {
			return err
		}
	}
	return nil
}

// bareSteps takes steps forever.
func bareSteps(w *distributed.World, o options) iter.Seq[error] {
	return func(yield func(error) bool) {
		if err := bareLoop(w, o, func() bool { return yield(nil) }); err != nil {
			yield(err)
		}
	}
}

func bareLoop(w *distributed.World, o options, goOn func() bool) error {
	m, opt, err := network(o.model)
	if err != nil {
		return err
	}
	loader, err := w.Loader(images{}, distributed.LoaderOptions{BatchSize: o.batch * w.Size(), Shuffle: true})
	if err != nil {
		return err
	}
	t := train.NewTrainer(w.Backend(), model.NewStore(), m, loss.SparseCategoricalCrossEntropyLogits, w.Optimizer(opt), nil, nil)
	for {
		for metrics, err := range w.TrainSteps(t, loader, nil) {
			if err != nil {
				return err
			}
			if last := tensors.ToScalar[float32](metrics[0]); last != last {
				return fmt.Errorf("the loss is %v", last)
			}
			for _, m := range metrics {
				m.MustFinalizeAll()
			}
			if !goOn() {
				return nil
			}
		}
	}
}

func withTrainer(w *distributed.World, o options, c *clock) error {
	return fit(w, o, c, trainer.Callback{
		BatchEnd:        func(*trainer.Event) error { c.step(); return nil },
		CheckpointSaved: func(*trainer.Event) error { c.saved(); return nil },
	})
}

// inTurns takes a bare step after each of the trainer's.
func inTurns(w *distributed.World, o options, c *clock) error {
	next, stop := iter.Pull(bareSteps(w, o))
	defer stop()
	var last time.Time // When the bare step ended.
	return fit(w, o, c, trainer.Callback{BatchEnd: func(*trainer.Event) error {
		began := time.Now()
		err, _ := next()
		ended := time.Now()
		if !last.IsZero() && err == nil {
			c.pair(began.Sub(last), ended.Sub(began))
		}
		last = ended
		return err
	}})
}

func fit(w *distributed.World, o options, c *clock, timer trainer.Callback) error {
	m, opt, err := network(o.model)
	if err != nil {
		return err
	}
	// One more update than is timed, so that the bookkeeping of the last timed update is included.
	config := trainer.Config{MaxSteps: c.last + 1, BatchSize: o.batch * w.Size(), Checkpoint: trainer.CheckpointConfig{Off: o.saveEvery == 0, EverySteps: o.saveEvery, Keep: 1}}
	t, err := trainer.New(w, config, trainer.Supervised(m, loss.SparseCategoricalCrossEntropyLogits, opt), trainer.WithCallbacks(timer), trainer.WithOutput(os.Stderr))
	if err != nil {
		return err
	}
	return t.Fit(context.Background(), images{}, nil)
}
