package trainer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
)

// histogramValues is the maximum number of values in a histogram. A larger tensor is sampled at
// equal distances.
const histogramValues = 1 << 20

// logHistograms logs, on rank 0, the gradients of this update and the weights after it. It leaves
// out the gradients of an update that was skipped because they have overflowed.
func (r *run) logHistograms(gradients []float32) error {
	if gradients == nil || r.logger == nil {
		return nil
	}
	skipped := r.step.ScalesLoss() && slices.ContainsFunc(gradients, notFinite)
	for _, shown := range r.step.Shown {
		own, name := gradients[:shown.Size], shown.Name
		gradients = gradients[len(own):]
		if !skipped {
			if err := r.logger.Histogram(r.at.Step, "gradients/"+strings.TrimPrefix(name, "/"), sampled(own, asFloat)); err != nil {
				return err
			}
		}
		if err := r.logWeights(name); err != nil {
			return fmt.Errorf("histogram of %s: %w", name, err)
		}
	}
	return nil
}

func (r *run) logWeights(name string) error {
	value, err := r.store.GetVariable(name).Value()
	if err != nil {
		return err
	}
	var values []float64
	if err := value.ConstFlatData(func(flat any) { values = floatsOf(flat) }); err != nil {
		return err
	}
	return r.logger.Histogram(r.at.Step, "weights/"+strings.TrimPrefix(name, "/"), values)
}

// floatsOf returns the values of a tensor whose type can be trained.
func floatsOf(flat any) []float64 {
	switch flat := flat.(type) {
	case []float32:
		return sampled(flat, asFloat)
	case []float64:
		return sampled(flat, func(x float64) float64 { return x })
	case []bfloat16.BFloat16:
		return sampled(flat, func(x bfloat16.BFloat16) float64 { return float64(x.Float32()) })
	case []float16.Float16:
		return sampled(flat, func(x float16.Float16) float64 { return float64(x.Float32()) })
	}
	return nil
}

func notFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

func asFloat(x float32) float64 { return float64(x) }

// sampled returns the values, or as many as a histogram takes.
func sampled[T any](values []T, number func(T) float64) []float64 {
	n := min(len(values), histogramValues)
	floats := make([]float64, n)
	for i := range floats {
		floats[i] = number(values[i*len(values)/n])
	}
	return floats
}
