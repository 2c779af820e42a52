package distributed

import (
	"errors"
	"fmt"
	"path"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/distributed/weigh"
)

// countedMean is one of GoMLX's means over batches. GoMLX weights a batch by its number of
// examples. If the mean of a batch divides by a sum over its data, such as the number of values
// that a mask leaves, countedMean weights it by that.
type countedMean struct {
	*metric.MeanMetric
	warn func(line string)
}

// countMeans replaces the means of a trainer before it builds their graphs.
func (w *World) countMeans(trainer Evaluator) {
	for i, m := range trainer.EvalMetrics() { // Its own slice.
		if mean, ok := m.(*metric.MeanMetric); ok {
			trainer.EvalMetrics()[i] = countedMean{mean, w.warnOnce}
		}
	}
}

// UpdateGraph implements metric.Interface.
func (m countedMean) UpdateGraph(scope *model.Scope, labels, predictions []*graph.Node) *graph.Node {
	running := m.MeanMetric.UpdateGraph(scope, labels, predictions)
	g, store := running.Graph(), scope.Store()
	of := func(name string) (*model.Variable, *graph.Node) {
		v := store.GetVariable(path.Join("/", metric.Scope, m.ScopeName(), name))
		return v, v.NodeValue(g)
	}
	totalVar, total := of("total")
	weightVar, weight := of("weight")
	value, err := batchMean(total)
	if err != nil {
		panic(err)
	}
	mean := weigh.Metric(store, value)
	if mean.Mixed {
		m.warn(fmt.Sprintf("the metric %q adds means over different numbers of values: each batch counts as its number of examples, so the metric depends on the size of the batches; let its terms divide by the same number, and build their mask once", m.Name()))
	}
	if mean.Weight == nil {
		return running
	}
	own := graph.ConvertDType(mean.Weight, weight.DType())
	weight = graph.Add(weight.Inputs()[0], own)
	total = graph.Add(total.Inputs()[0], graph.Mul(mean.Value, own))
	weightVar.SetNodeValue(weight)
	totalVar.SetNodeValue(total)
	return graph.Div(total, weight)
}

// batchMean returns the mean of a batch, which GoMLX has multiplied by a weight and added to a
// total.
func batchMean(total *graph.Node) (*graph.Node, error) {
	if total.Type() == graph.NodeTypeAdd {
		if weighted := total.Inputs()[1]; weighted.Type() == graph.NodeTypeMul {
			return weighted.Inputs()[0], nil
		}
	}
	return nil, errors.New("distributed: GoMLX computes its mean metrics in a way that gonbatch doesn't know: use the version of GoMLX in gonbatch's go.mod")
}
