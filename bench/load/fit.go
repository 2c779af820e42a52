package main

import (
	"context"
	"os"
	"time"

	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/prometheus/procfs"

	"gonbatch/distributed"
	"gonbatch/models"
	"gonbatch/trainer"
)

// fit trains two epochs, the first of which compiles, and measures the second.
func fit(w *distributed.World, o options, line map[string]float64) error {
	var began time.Time
	timer := trainer.Callback{
		EpochStart: func(*trainer.Event) error { began = time.Now(); return nil },
		EpochEnd: func(e *trainer.Event) error {
			line["ms_per_step"] = 1000 * time.Since(began).Seconds() / float64(o.steps)
			line["data_wait"] = e.Metrics["train/data_wait"]
			return nil
		},
	}
	t, err := trainer.New(w, trainer.Config{
		MaxEpochs: 2, BatchSize: o.batch, Checkpoint: trainer.CheckpointConfig{Off: true},
		Loader: trainer.LoaderConfig{Workers: o.workersHere(), Prefetch: 2 * o.workers},
	}, trainer.Supervised(models.MNIST, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(1e-3).Done()),
		trainer.WithCallbacks(timer), trainer.WithOutput(os.Stderr))
	if err != nil {
		return err
	}
	return t.Fit(context.Background(), slow{o.wait, o.steps * o.batch}, nil)
}

// peak returns the most memory that this process has used, in MB.
func peak() (float64, error) {
	process, err := procfs.Self()
	if err != nil {
		return 0, err
	}
	status, err := process.NewStatus()
	return float64(status.VmHWM) / 1e6, err
}
