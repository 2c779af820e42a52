package trainer

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/metric"
)

// stepOutput makes GoMLX return a node of a training step as one of its metrics, although it need
// not be a scalar: GoMLX has no other place for it.
type stepOutput struct {
	metric.Interface
	node func(g *graph.Graph) *graph.Node
}

// newStepOutput returns an output that node builds, after the metrics before it.
func newStepOutput(name string, node func(g *graph.Graph) *graph.Node) metric.Interface {
	return stepOutput{metric.NewBaseMetric(name, name, name, nil, nil), node}
}

// UpdateGraph implements metric.Interface.
func (o stepOutput) UpdateGraph(_ *model.Scope, _, predictions []*graph.Node) *graph.Node {
	return o.node(predictions[0].Graph())
}

// popStepOutput removes the last of a step's metrics, which is an output.
func popStepOutput(metrics *[]*tensors.Tensor) *tensors.Tensor {
	last := len(*metrics) - 1
	value := (*metrics)[last]
	*metrics = (*metrics)[:last]
	return value
}
