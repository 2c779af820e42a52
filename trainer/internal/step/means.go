package step

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/distributed"
	"gonbatch/distributed/weigh"
)

// means are the losses and metrics of the graph that is being built, which may divide by a sum over
// the data, such as the number of values that a mask leaves. Over ranks, batches and the batches of
// an update, each then counts as what it divides by for each example. (So one with fewer examples
// counts as much as the others, as it does without a mask.)
type means struct {
	examples int           // In the batch.
	losses   []weigh.Mean  // Of the objectives, with what layers add to them.
	metrics  []weigh.Mean  // Of the training.
	weights  []*graph.Node // Of the objectives' gradients; nil where each batch counts the same.
}

// meanLoss returns an objective's loss, without divisions by 0, and notes what it counts, with what
// layers add to it: nil if nothing.
func (s *draft) meanLoss(loss, added *graph.Node) *graph.Node {
	mean := weigh.Loss(s.Store, loss)
	value := mean.Value
	if added != nil {
		mean = weigh.Sum(mean, weigh.Loss(s.Store, added))
	}
	if mean.Mixed && s.divides() && s.Store.IsTraining(loss.Graph()) && s.once("means") {
		s.Printf("warning: the loss adds means over different numbers of values: each batch and rank counts the same, so what the model learns depends on accumulate_grad_batches and on the number of ranks; let its terms divide by the same number, and build their mask once\n")
	}
	s.means.losses = append(s.means.losses, mean)
	return value
}

// divides reports whether several batches or ranks share an update.
func (s *Step) divides() bool { return s.World.Size() > 1 || s.Accumulate > 1 }

// weighted returns the loss of an objective whose gradients are computed, and the factor for them.
// Weights that are about 1 keep the size of numbers in half precision.
func (s *draft) weighted(objective int, loss *graph.Node) (weighted *graph.Node, factor float64) {
	mean := s.means.losses[objective]
	weight := mean.PerExample(s.means.examples)
	if !s.divides() {
		weight = nil
	}
	s.means.weights = append(s.means.weights, weight)
	if weight == nil {
		return loss, 1
	}
	if factor = 1; s.lossScale != nil {
		factor = float64(mean.Size) / float64(s.means.examples)
	}
	return graph.Mul(loss, graph.ConvertDType(graph.DivScalar(weight, factor), loss.DType())), factor
}

// unweighted divides means of the objectives' gradients, one after the other, by the means of their
// weights, which are those of present. The scopes are those of the objectives.
func (m *means) unweighted(scopes []*model.Scope, g *graph.Graph, gradients, weights []*graph.Node) {
	for i, weight := range m.weights {
		own := gradients[:len(Trained(scopes[i], g))]
		gradients = gradients[len(own):]
		if weight != nil {
			copy(own, distributed.Unweighted(own, weights[0]))
			weights = weights[1:]
		}
	}
}

// present returns the weights that there are.
func (m *means) present() []*graph.Node {
	return slices.DeleteFunc(slices.Clone(m.weights), func(weight *graph.Node) bool { return weight == nil })
}

// counts returns what each loss and metric of a training batch counts, in the order of a step's
// values. If all batches count the same, it is a scalar.
func (m *means) counts(g *graph.Graph, ofLosses []weigh.Mean) *graph.Node {
	weighs, weights := false, []*graph.Node(nil)
	for _, mean := range slices.Concat(ofLosses, m.metrics) {
		weight := graph.ScalarOne(g, dtypes.Float64)
		if own := mean.PerExample(m.examples); own != nil {
			weighs, weight = true, graph.ConvertDType(own, dtypes.Float64)
		}
		weights = append(weights, weight)
	}
	if !weighs {
		return graph.ScalarZero(g, dtypes.Float64)
	}
	return graph.Stack(weights, 0)
}

// Metric is a metric of the batches of a training.
type Metric struct {
	Name  string
	Value metric.BaseMetricGraph // Its mean over a batch, or a value for each example.
}

// build returns a metric's mean over a batch.
func (m Metric) build(s *draft, labels, predictions []*graph.Node) *graph.Node {
	x := m.Value(s.Store.RootScope(), labels, predictions)
	if x.DType() != dtypes.Float64 { // Half precision is too coarse for the mean, and integers have none.
		x = graph.ConvertDType(x, dtypes.Float32)
	}
	mean := weigh.Metric(s.Store, graph.ReduceAllMean(x))
	s.means.metrics = append(s.means.metrics, mean)
	return mean.Value
}
