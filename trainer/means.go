package trainer

import (
	"errors"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/distributed"
	"gonbatch/distributed/weigh"
)

// means are the losses and metrics of the graph that is being built, which may divide by a sum over
// the data, such as the number of values that a mask leaves. Over ranks, batches and the batches of
// an update, each then counts as what it divides by.
type means struct {
	examples int           // In the batch.
	losses   []weigh.Mean  // Of the objectives, with what layers add to them.
	total    weigh.Mean    // Of these losses.
	metrics  []weigh.Mean  // Of the training.
	shares   []*graph.Node // The weights of the objectives' gradients; nil where each batch counts the same.
	warned   bool
}

// begin forgets the last graph.
func (m *means) begin(examples int) { *m = means{examples: examples, warned: m.warned} }

// meanLoss returns an objective's loss, without divisions by 0, and notes what it counts, with what
// layers add to it: nil if nothing.
func (s *stepper) meanLoss(loss, added *graph.Node) *graph.Node {
	mean := weigh.Loss(s.store, loss)
	value := mean.Value
	if added != nil {
		mean = weigh.Sum(mean, weigh.Loss(s.store, added))
	}
	if mean.Mixed && s.divides() && s.store.IsTraining(loss.Graph()) && !s.means.warned {
		s.means.warned = true
		s.printf("warning: the loss adds means over different numbers of values: each batch and rank counts the same, so what the model learns depends on accumulate_batches and on the number of ranks\n")
	}
	s.means.losses = append(s.means.losses, mean)
	return value
}

// divides reports whether several batches or ranks share an update.
func (s *stepper) divides() bool { return s.world.Size() > 1 || s.accumulate > 1 }

// weighted returns the loss of an objective whose gradients are computed, and the factor for them.
// Weights that are about 1 keep the size of numbers in half precision.
func (s *stepper) weighted(objective int, loss *graph.Node) (weighted *graph.Node, factor float64) {
	mean := s.means.losses[objective]
	weight := mean.PerExample(s.means.examples)
	if !s.divides() {
		weight = nil
	}
	s.means.shares = append(s.means.shares, weight)
	if weight == nil {
		return loss, 1
	}
	if factor = 1; s.lossScale != nil {
		factor = float64(mean.Size) / float64(s.means.examples)
	}
	return graph.Mul(loss, graph.ConvertDType(graph.DivScalar(weight, factor), loss.DType())), factor
}

// unweighted divides means of the objectives' gradients, one after the other, by the means of their
// weights. The scopes are those of the objectives.
func (m *means) unweighted(scopes []*model.Scope, g *graph.Graph, gradients, weights []*graph.Node) {
	for i, share := range m.shares {
		own := gradients[:len(trained(scopes[i], g))]
		gradients = gradients[len(own):]
		if share != nil {
			copy(own, distributed.Unweighted(own, weights[0]))
			weights = weights[1:]
		}
	}
}

// weights returns the weights of the gradients of this update on this rank.
func (m *means) weights() (all []*graph.Node) {
	for _, share := range m.shares {
		if share != nil {
			all = append(all, share)
		}
	}
	return all
}

// meansMetric makes GoMLX return what each loss and metric of a training batch counts, in the order
// of its metrics, as a metric that isn't a scalar. If all batches count the same, it returns a
// scalar.
type meansMetric struct {
	metric.Interface
	means      *means
	objectives []Objective
}

// UpdateGraph implements metric.Interface. It is called after those of the other metrics.
func (m meansMetric) UpdateGraph(_ *model.Scope, _, predictions []*graph.Node) *graph.Node {
	g, losses := predictions[0].Graph(), m.means.losses
	all := make([]weigh.Mean, 2, 2+len(losses)+len(m.means.metrics)) // The loss, and GoMLX's moving average of it.
	all[0] = m.means.total
	for i, o := range m.objectives {
		if o.Name != "" {
			all = append(all, losses[i])
		}
	}
	shares, weighs := make([]*graph.Node, 0, cap(all)), false
	for _, mean := range append(all, m.means.metrics...) {
		share := mean.PerExample(m.means.examples)
		weighs = weighs || share != nil
		if share == nil {
			share = graph.ScalarOne(g, dtypes.Float64)
		}
		shares = append(shares, graph.ConvertDType(share, dtypes.Float64))
	}
	if !weighs {
		return graph.ScalarZero(g, dtypes.Float32)
	}
	return graph.Stack(shares, 0)
}

// takeWeights reads what a batch's losses and metrics count: nil if each counts 1.
func takeWeights(output *tensors.Tensor) (weights []float64, err error) {
	if output.Rank() > 0 {
		weights, err = tensors.CopyFlatData[float64](output)
	}
	return weights, errors.Join(err, output.FinalizeAll())
}
