package distributed

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
)

// FitOptions say how long to train, and how often to report.
type FitOptions struct {
	// Epochs is the number of passes over the loader's dataset.
	Epochs int
	// LogEvery is the number of steps between two reports; 0 stands for 100. The last step of an epoch is always reported.
	LogEvery int
}

// Fit trains for some epochs. Rank 0 prints the progress and records it in the run directory. The loss is the mean over the ranks.
func (w *World) Fit(trainer *train.Trainer, l Loader, o FitOptions) error {
	if o.Epochs < 1 {
		return fmt.Errorf("distributed: train for %d epochs: it must be at least 1", o.Epochs)
	}
	if o.LogEvery == 0 {
		o.LogEvery = 100
	}
	progress := &progress{world: w, options: o, steps: l.Steps(), batchSize: l.BatchSize(), since: time.Now()}
	for epoch := range o.Epochs {
		if err := w.fitEpoch(trainer, l, epoch, progress); err != nil {
			return fmt.Errorf("distributed: rank %d, epoch %d: %w", w.Rank(), epoch+1, err)
		}
	}
	return nil
}

func (w *World) fitEpoch(trainer *train.Trainer, l Loader, epoch int, p *progress) error {
	step := 0
	for metrics, err := range w.TrainSteps(trainer, l, nil) {
		if err != nil {
			return fmt.Errorf("step %d: %w", step+1, err)
		}
		step++
		if err := p.report(epoch, step, trainer.GlobalStep(), metrics); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if err := finalize(metrics); err != nil {
			return err
		}
	}
	return nil
}

// TrainSteps runs the loader's next epoch and yields the metrics of each step; the first of them is the loss. The caller finalizes
// them. spec, if it is given, tells the spec of the batch at a place of the iteration (see train.Batch): GoMLX compiles a program for each.
func (w *World) TrainSteps(trainer *train.Trainer, l Loader, spec func(i int) any) iter.Seq2[[]*tensors.Tensor, error] {
	if spec == nil {
		spec = func(int) any { return nil }
	}
	sharded, ok := l.(train.DistributedDataset)
	if !ok {
		return iterate(l.Iter(), func(i int, batch train.Batch) ([]*tensors.Tensor, error) {
			batch.Spec = spec(i)
			return trainer.TrainStep(batch)
		})
	}
	return iterate(sharded.DistributedIter(), func(i int, batch train.DistributedBatch) ([]*tensors.Tensor, error) {
		batch.Spec = spec(i)
		return trainer.DistributedTrainStep(sharded.Strategy(), sharded.DeviceAssignment(), batch)
	})
}

func iterate[B any](batches iter.Seq2[B, error], run func(i int, batch B) ([]*tensors.Tensor, error)) iter.Seq2[[]*tensors.Tensor, error] {
	return func(yield func([]*tensors.Tensor, error) bool) {
		i := 0
		for batch, err := range batches {
			ok := yield(step(batch, err, func(batch B) ([]*tensors.Tensor, error) { return run(i, batch) }))
			if !ok {
				return
			}
			i++
		}
	}
}

func step[B any](batch B, err error, run func(B) ([]*tensors.Tensor, error)) ([]*tensors.Tensor, error) {
	if err != nil {
		return nil, err
	}
	return run(batch)
}

func finalize(all []*tensors.Tensor) error {
	var errs []error
	for _, t := range all {
		errs = append(errs, t.FinalizeAll())
	}
	return errors.Join(errs...)
}

// progress prints and records how training goes.
type progress struct {
	world            *World
	options          FitOptions
	steps, batchSize int
	since            time.Time // Of the last report.
	unreported       int       // Steps since then.
}

// report is called after each step. It is collective where it is due, at the same steps on all ranks.
func (p *progress) report(epoch, step int, globalStep int64, metrics []*tensors.Tensor) error {
	p.unreported++
	if step%p.options.LogEvery != 0 && step != p.steps {
		return nil
	}
	loss, err := scalar(metrics[0])
	if err != nil {
		return err
	}
	sum := []float64{loss}
	if err := p.world.AllReduceSum(sum); err != nil {
		return err
	}
	loss = sum[0] / float64(p.world.Size())
	rate := float64(p.unreported*p.batchSize) / time.Since(p.since).Seconds()
	p.since, p.unreported = time.Now(), 0
	p.world.Printf("epoch %d/%d  step %d/%d  loss %.4f  %.0f examples/s\n", epoch+1, p.options.Epochs, step, p.steps, loss, rate)
	return p.world.Log(globalStep, map[string]float64{"epoch": float64(epoch + 1), "train_loss": loss, "examples_per_second": rate})
}
