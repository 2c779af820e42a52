package distributed

import (
	"errors"
	"fmt"
	"iter"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/data/load"
)

// TrainSteps runs the loader's next epoch and yields the metrics of each step, with the loss first.
// The caller must finalize them. If spec is not nil, it returns the spec of the iteration's i-th
// batch (see train.Batch). GoMLX compiles a program for each spec.
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
			var metrics []*tensors.Tensor
			if err == nil {
				metrics, err = run(i, batch)
				if failed, ok := errors.AsType[*load.Error](err); ok {
					err = failed // Without what GoMLX says around it: the graph was right.
				}
			}
			if !yield(metrics, err) {
				return
			}
			i++
		}
	}
}

func finalize(all []*tensors.Tensor) error {
	var errs []error
	for _, t := range all {
		errs = append(errs, t.FinalizeAll())
	}
	return errors.Join(errs...)
}

// scalar returns the value of a metric.
func scalar(t *tensors.Tensor) (float64, error) {
	if t.Size() != 1 {
		return 0, fmt.Errorf("distributed: a metric of shape %s: it must be a scalar", t.Shape())
	}
	return shapes.ConvertTo[float64](t.Value()), nil
}
