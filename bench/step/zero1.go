package main

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
)

// dividing is an optimizer whose update the ranks divide, and whose state each has a part of: the
// trainer's strategy zero1, without checkpoints.
type dividing struct {
	world *distributed.World
	inner divisible
}

// divisible is an optimizer that accepts the gradients of parts, as GoMLX's do.
type divisible interface {
	optimizer.Interface
	train.OptimizeWithGradients
}

// optimizerFor returns the task's optimizer for all ranks.
func (t task) optimizerFor(world *distributed.World, zero1 bool) (optimizer.Interface, error) {
	if !zero1 {
		return world.Optimizer(t.optimizer), nil
	}
	inner, ok := t.optimizer.(divisible)
	if !ok || world.Devices() > 1 {
		return nil, fmt.Errorf("-zero1 with %d devices and the optimizer %T: it needs one device for each rank, and an optimizer that accepts gradients", world.Devices(), t.optimizer)
	}
	return dividing{world, inner}, nil
}

var _ train.OptimizeWithGradients = dividing{}

// UpdateGraph implements optimizer.Interface.
func (d dividing) UpdateGraph(scope *model.Scope, g *graph.Graph, loss *graph.Node) {
	d.UpdateGraphWithGradients(scope, scope.BuildTrainableVariablesGradientsGraph(loss), loss.DType())
}

// UpdateGraphWithGradients implements train.OptimizeWithGradients.
func (d dividing) UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	store, g := scope.Store(), gradients[0].Graph()
	var weights []*model.Variable
	for v := range scope.IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			weights = append(weights, v)
		}
	}
	parts := d.world.ScatterGradients(store, gradients)
	d.world.UpdateParts(store, g, weights, func() { d.inner.UpdateGraphWithGradients(scope, parts, lossDType) })
}

// Clear implements optimizer.Interface.
func (d dividing) Clear(scope *model.Scope) error { return d.inner.Clear(scope) }
