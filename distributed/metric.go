package distributed

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/support/exceptions"

	"gonbatch/internal/plural"
)

// CheckMetrics returns an error for evaluation metrics whose value over a dataset would be wrong. A
// *metric.MeanMetric, a type that embeds one, and a metric.UpdateGo are correct in every world. A
// metric that keeps its state in another way is accepted with one rank only, because the states of
// several ranks can't be combined.
func (w *World) CheckMetrics(metrics []metric.Interface) error {
	for _, m := range metrics {
		if err := w.checkMetric(m); err != nil {
			return fmt.Errorf("distributed: the metric %q (%T) %w", m.Name(), m, err)
		}
	}
	return nil
}

func (w *World) checkMetric(m metric.Interface) error {
	_, isMean := m.(interface {
		WithDynamicBatch(bool) *metric.MeanMetric
	})
	_, inGo := m.(metric.UpdateGo)
	switch {
	case reflect.TypeOf(m) == ofLastBatch:
		return errors.New("covers only the last batch, not the whole dataset: use metric.NewMeanMetric")
	case reflect.TypeOf(m) == movingAverage:
		return errors.New("is a moving average, which depends on the batches and their order: use metric.NewMeanMetric")
	case w.Size() > 1 && !isMean && !inGo:
		return fmt.Errorf("keeps its own state, which can't be combined over %d ranks: use metric.NewMeanMetric, or implement metric.UpdateGo", w.Size())
	}
	return nil
}

// GoMLX does not export these types.
var (
	ofLastBatch   = reflect.TypeOf(metric.NewBaseMetric("", "", "", nil, nil))
	movingAverage = reflect.TypeOf(metric.NewExponentialMovingAverageMetric("", "", "", nil, nil, 0))
)

// results are the values of a metric.UpdateGo for each batch of this rank, in the order of the
// examples.
type results struct {
	encoded bytes.Buffer
	encoder *gob.Encoder
}

func (r *results) add(value *tensors.Tensor) error {
	if r.encoder == nil {
		r.encoder = gob.NewEncoder(&r.encoded)
	}
	return value.GobSerialize(r.encoder)
}

// tensors decodes the results.
func (r *results) tensors() (all []*tensors.Tensor, err error) {
	decoder := gob.NewDecoder(&r.encoded)
	for {
		value, err := tensors.GobDeserialize(decoder)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
}

// join computes a metric.UpdateGo over all ranks. Each rank updates it with the results of all
// batches, in the order of the examples.
func (w *World) join(m metric.UpdateGo, root *model.Scope, mine *results, examples int) (float64, error) {
	parts, err := w.AllGather(mine.encoded.Bytes())
	if err != nil {
		return 0, err
	}
	var all []*tensors.Tensor
	for rank, part := range parts {
		theirs, err := (&results{encoded: *bytes.NewBuffer(part)}).tensors()
		if err != nil {
			return 0, fmt.Errorf("results of rank %d: %w", rank, err)
		}
		all = append(all, theirs...)
	}
	if _, isMedian := m.(*metric.StreamingMedianMetric); isMedian {
		if all, err = single(all, examples); err != nil {
			return 0, err
		}
	}
	var value *tensors.Tensor
	err = exceptions.TryCatch[error](func() {
		m.Reset(root)
		for _, result := range all {
			m.UpdateGo(result)
		}
		value = m.ReadGo()
	})
	if err != nil {
		return 0, err
	}
	return scalar(value)
}

// single splits the results into one value for each example, for a median. A median of the batches'
// means would depend on how the examples are divided into batches.
func single(all []*tensors.Tensor, examples int) ([]*tensors.Tensor, error) {
	var values []*tensors.Tensor
	for _, value := range all {
		flat, err := tensors.CopyFlatData[float64](value)
		if err != nil {
			return nil, err
		}
		for _, x := range flat {
			values = append(values, tensors.FromScalar(x))
		}
	}
	if len(values) != examples {
		return nil, fmt.Errorf("it has %s for %s, and a median of the batches' values depends on the batches: return one value for each example, or evaluate one example at a time",
			plural.Of(len(values), "value"), plural.Of(examples, "example"))
	}
	return values, nil
}
