package distributed

import (
	"errors"
	"path"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/support/exceptions"
)

// tally collects the metrics of an evaluation on this rank. GoMLX's mean metrics are running means,
// which the program computes from sums of the values' type. In float32, what a batch adds to the
// sum of a million others loses most of its digits. So every few batches, their mean is moved to
// sums in float64, and the metrics begin again.
type tally struct {
	trainer Evaluator
	values  []float64  // The running means.
	sums    []float64  // Of means times their weights.
	weights []float64  // GoMLX's: numbers of examples, or of what a mask leaves.
	known   []bool     // Whether GoMLX has a weight.
	inGo    []*results // Of each metric.UpdateGo, the results of the batches; nil for the others.
	batches int        // Since the last move.
}

// batchesInFloat32 is how many batches a program sums.
const batchesInFloat32 = 64

// newTally resets the trainer's metrics, and makes its means count what they divide by.
func (w *World) newTally(trainer Evaluator) (*tally, error) {
	w.countMeans(trainer)
	n := len(trainer.EvalMetrics())
	t := &tally{trainer: trainer, values: make([]float64, n), sums: make([]float64, n), weights: make([]float64, n), known: make([]bool, n), inGo: make([]*results, n)}
	for i, m := range trainer.EvalMetrics() {
		if _, ok := m.(metric.UpdateGo); ok {
			t.inGo[i] = &results{}
		}
		if err := t.reset(m); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *tally) reset(m metric.Interface) error {
	return exceptions.TryCatch[error](func() { m.Reset(t.trainer.Store().RootScope()) })
}

// add takes the metrics of the next batch.
func (t *tally) add(metrics []*tensors.Tensor) (err error) {
	for i, m := range metrics {
		if t.inGo[i] != nil {
			err = t.inGo[i].add(m)
		} else {
			t.values[i], err = scalar(m)
		}
		if err != nil {
			return err
		}
	}
	if t.batches++; t.batches == batchesInFloat32 {
		return t.move()
	}
	return nil
}

// move moves the means of the batches since the last move to the sums, of those metrics whose
// weight is known.
func (t *tally) move() error {
	t.batches = 0
	for i, m := range t.trainer.EvalMetrics() {
		weight, ok, err := t.weight(i)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		t.known[i] = true
		if weight != 0 { // Else there is no mean.
			t.sums[i] += t.values[i] * weight
			t.weights[i] += weight
		}
		if err := t.reset(m); err != nil {
			return err
		}
	}
	return nil
}

// end moves the rest to the sums. A metric that keeps its weight elsewhere has the weight of this
// rank's examples.
func (t *tally) end(examples int) error {
	if t.batches > 0 {
		if err := t.move(); err != nil {
			return err
		}
	}
	for i := range t.sums {
		if !t.known[i] && examples > 0 {
			t.sums[i], t.weights[i] = t.values[i]*float64(examples), float64(examples)
		}
	}
	return nil
}

// weight returns the weight of a metric's running mean. It reports false if the metric isn't
// GoMLX's own.
func (t *tally) weight(i int) (weight float64, ok bool, err error) {
	m, isMean := t.trainer.EvalMetrics()[i].(countedMean)
	if !isMean || t.inGo[i] != nil {
		return 0, false, nil
	}
	v := t.trainer.Store().GetVariable(path.Join("/", metric.Scope, m.ScopeName(), "weight"))
	if v == nil || !v.HasValue() {
		return 0, false, nil
	}
	value, err := v.Value()
	if err != nil {
		return 0, false, err
	}
	return shapes.ConvertTo[float64](value.Value()), true, nil
}

// overRanks returns the means over all ranks.
func (t *tally) overRanks(w *World) ([]float64, error) {
	all := append(append([]float64{}, t.sums...), t.weights...)
	if err := w.AllReduceSum(all); err != nil {
		return nil, err
	}
	values := make([]float64, len(t.sums))
	for i := range values {
		values[i] = all[i] / all[len(values)+i] // NaN if nothing counts, as in the precision of a model that finds nothing.
	}
	if all[len(values)] == 0 {
		return nil, errors.New("nothing counts in the mean loss: the mask or the weights beside the labels leave all of them out")
	}
	return values, nil
}
