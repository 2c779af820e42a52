package trainer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// histogramValues is the maximum number of values in a histogram. A larger tensor is sampled at
// equal distances.
const histogramValues = 1 << 20

// shownGradients makes the gradients of an update one of its outputs, averaged over the ranks but
// not yet clipped.
type shownGradients struct {
	node  *graph.Node // In the graph that is being built: all in one row; nil if they are not shown.
	names []string    // Of the variables, in order.
	sizes []int
}

// build concatenates the gradients of all objectives into a row.
func (s *shownGradients) build(scopes []*model.Scope, g *graph.Graph, gradients []*graph.Node) {
	s.names, s.sizes = nil, nil
	for _, scope := range scopes {
		for _, v := range trained(scope, g) {
			s.names = append(s.names, v.Path())
		}
	}
	flat := make([]*graph.Node, len(gradients))
	for i, gradient := range gradients {
		s.sizes = append(s.sizes, gradient.Shape().Size())
		flat[i] = graph.ConvertDType(graph.Reshape(gradient, gradient.Shape().Size()), dtypes.Float32)
	}
	s.node = flat[0]
	if len(flat) > 1 {
		s.node = graph.Concatenate(flat, 0)
	}
}

// output returns the gradients, or 0 if they are not shown.
func (s *shownGradients) output(g *graph.Graph) *graph.Node {
	if s.node == nil {
		return graph.ScalarZero(g, dtypes.Float32)
	}
	return s.node
}

// logHistograms logs, on rank 0, the gradients of this update and the weights after it. It leaves
// out the gradients of an update that was skipped because they have overflowed.
func (r *run) logHistograms() error {
	if r.stepper.kind != updatesAndShows || r.logger == nil {
		return nil
	}
	gradients, err := tensors.CopyFlatData[float32](r.gradients)
	if err != nil {
		return fmt.Errorf("histograms of the gradients: %w", err)
	}
	skipped := r.stepper.lossScale != nil && slices.ContainsFunc(gradients, notFinite)
	for i, name := range r.stepper.shown.names {
		own := gradients[:r.stepper.shown.sizes[i]]
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

func (r *run) dropGradients() {
	if r.gradients != nil {
		_ = r.gradients.FinalizeAll()
		r.gradients = nil
	}
}
