package distributed

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/distributed/weigh"
)

// Optimizer returns an optimizer that takes the same step on all ranks. It averages the gradients
// over the ranks before it passes them to the inner optimizer, and gives every rank the initial
// weights of rank 0. With one rank it returns the inner optimizer.
//
// If the loss divides by a sum over the data, such as the number of values that a mask leaves, each
// rank counts as what it divides by. So the step is that of one rank with the whole batch. With
// GoMLX's own accumulation of gradients, each rank counts the same.
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
	mean := weigh.Loss(scope.Store(), loss)
	if mean.Mixed {
		o.world.warnOnce("the loss adds means over different numbers of values: each rank counts the same, so what a model learns depends on the number of ranks; let its terms divide by the same number, and build their mask once")
	}
	weight := mean.PerExample(weigh.Examples(g))
	if weight == nil {
		o.UpdateGraphWithGradients(scope, scope.BuildTrainableVariablesGradientsGraph(mean.Value), loss.DType())
		return
	}
	gradients := scope.BuildTrainableVariablesGradientsGraph(graph.Mul(mean.Value, graph.ConvertDType(weight, loss.DType())))
	averaged := o.world.AverageGradients(scope.Store(), append(gradients, weight))
	last := len(gradients)
	o.update(scope, Unweighted(averaged[:last], averaged[last]), loss.DType())
}

// UpdateGraphWithGradients implements train.OptimizeWithGradients. With accumulated gradients, the
// ranks communicate once per update.
func (o *averagingOptimizer) UpdateGraphWithGradients(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	o.update(scope, o.world.AverageGradients(scope.Store(), gradients), lossDType)
}

// update lets the inner optimizer update with gradients over all ranks.
func (o *averagingOptimizer) update(scope *model.Scope, gradients []*graph.Node, lossDType dtypes.DType) {
	inner, ok := o.inner.(train.OptimizeWithGradients)
	if !ok {
		panic(fmt.Errorf("distributed: the optimizer %T can't be used by %d ranks: it has no method UpdateGraphWithGradients, so its gradients can't be averaged", o.inner, o.world.Size()))
	}
	inner.UpdateGraphWithGradients(scope, gradients, lossDType)
}

// Unweighted is a graph-building function. It divides means of weighted gradients by the mean of
// their weights, a scalar. They are 0 if it is.
func Unweighted(gradients []*graph.Node, weight *graph.Node) []*graph.Node {
	divisor := graph.Where(graph.Equal(weight, graph.ZerosLike(weight)), graph.OnesLike(weight), weight)
	all := make([]*graph.Node, len(gradients))
	for i, gradient := range gradients {
		all[i] = graph.Div(gradient, graph.ConvertDType(divisor, gradient.DType()))
	}
	return all
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
	w.averages.Store(true)
	if err := w.ShareVariables(store); err != nil {
		panic(err)
	}
	if len(gradients) > 0 {
		if err := checkpoint.MisplacedIn(store, gradients[0].Graph()); err != nil {
			panic(fmt.Errorf("distributed: %w", err))
		}
		w.warnOfLocalNorms(store, gradients[0].Graph())
	}
	w.forecaster.sees(store)
}

// Clear implements optimizer.Interface.
func (o *averagingOptimizer) Clear(scope *model.Scope) error { return o.inner.Clear(scope) }
