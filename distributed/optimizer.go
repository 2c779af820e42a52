package distributed

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// Optimizer returns an optimizer that takes the same step on all ranks. It averages the gradients
// over the ranks before it passes them to the inner optimizer, and gives every rank the initial
// weights of rank 0. With one rank it returns the inner optimizer.
//
// The inner optimizer must accept gradients (UpdateGraphWithGradients), as all of GoMLX's do.
// Otherwise the first training step fails.
func (w *World) Optimizer(inner optimizer.Interface) optimizer.Interface {
	if w.isAlone() {
		return inner
	}
	return &averagingOptimizer{world: w, inner: inner}
}

// averagingOptimizer implements data parallelism (Li et al., PyTorch Distributed, VLDB 2020,
// https://arxiv.org/abs/2006.15704).
type averagingOptimizer struct {
	world *World
	inner optimizer.Interface
}

var _ train.OptimizeWithGradients = (*averagingOptimizer)(nil)

// UpdateGraph implements optimizer.Interface.
func (o *averagingOptimizer) UpdateGraph(scope *model.Scope, g *graph.Graph, loss *graph.Node) {
	o.UpdateGraphWithGradients(scope, scope.BuildTrainableVariablesGradientsGraph(loss), loss.DType())
}

// UpdateGraphWithGradients implements train.OptimizeWithGradients. With accumulated gradients, the
// ranks communicate once per update.
func (o *averagingOptimizer) UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	inner, ok := o.inner.(train.OptimizeWithGradients)
	if !ok {
		panic(fmt.Errorf("distributed: the optimizer %T can't be used by %d ranks: it has no method UpdateGraphWithGradients, so its gradients can't be averaged", o.inner, o.world.Size()))
	}
	inner.UpdateGraphWithGradients(scope, o.world.AverageGradients(scope.Store(), gradients), lossDType)
}

// AverageGradients is a graph-building function for your own optimizer or training step. It returns
// the means of the gradients over the ranks, computed inside the program. It uses one all-reduce
// for each bucket of gradients of one element type: of up to 32 MiB on CPUs, where large gradients
// have their own, and of up to 12 MiB on GPUs, where it runs while the program computes the
// gradients of the next bucket. On CPUs of several machines it may do so too, with buckets of up to
// 1 MiB: see docs/adr/0026. Gradients of half precision travel as they are, and are averaged in
// float32. Call it once in a step, with all gradients.
//
// It also averages the model's buffers that the graph changes without training them, such as the
// moving averages of batch normalization, and sets new variables to rank 0's values on every rank.
// With one rank it returns the gradients unchanged.
func (w *World) AverageGradients(store *model.Store, gradients []*graph.Node) []*graph.Node {
	if w.isAlone() {
		w.forecaster.sees(store)
		return gradients
	}
	w.shareForStep(store, gradients)
	buffers := changedBuffers(store, gradients)
	nodes := gradients
	for _, v := range buffers {
		nodes = append(nodes[:len(nodes):len(nodes)], v.NodeValue(gradients[0]))
	}
	averaged := w.average(nodes)
	for i, v := range buffers {
		v.SetNodeValue(averaged[len(gradients)+i])
	}
	return averaged[:len(gradients)]
}

// shareForStep prepares the variables of a step whose gradients are about to be reduced.
func (w *World) shareForStep(store *model.Store, gradients []*graph.Node) {
	if err := w.ShareVariables(store); err != nil {
		panic(err)
	}
	if len(gradients) > 0 {
		w.warnOfLocalNorms(store, gradients[0].Graph())
	}
	w.forecaster.sees(store)
}

// Clear implements optimizer.Interface.
func (o *averagingOptimizer) Clear(scope *model.Scope) error { return o.inner.Clear(scope) }
