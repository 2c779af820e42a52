package distributed

import (
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/collective"
	"gonbatch/distributed/pjrt"
)

// average returns the mean of each node over the ranks. It uses one all-reduce for each bucket,
// because each collective costs latency.
func (w *World) average(nodes []*graph.Node) []*graph.Node {
	averaged, groups := slices.Clone(nodes), buckets(nodes, averageBytes, w.averageAlone())
	means := make([]func() *graph.Node, len(groups))
	if w.sumsAtEnd(nodes) {
		for _, group := range groups { // Its last node is computed last.
			pjrt.After(nodes[group[len(group)-1]])
		}
	}
	for i, group := range groups {
		flat := make([]*graph.Node, len(group))
		for i, index := range group {
			flat[i] = graph.Reshape(nodes[index], nodes[index].Shape().Size())
		}
		means[i] = w.startMean(concatenate(flat))
	}
	for i, group := range groups {
		mean, offset := means[i](), 0
		for _, index := range group {
			shape := nodes[index].Shape()
			part := graph.Slice(mean, graph.AxisRange(offset, offset+shape.Size()))
			averaged[index] = graph.Reshape(part, shape.Dimensions...)
			offset += shape.Size()
		}
	}
	return averaged
}

// mostAtEnd is how many bytes may wait for the last gradient: they need memory until then.
const mostAtEnd = 64 << 20

// sumsAtEnd reports whether the sums wait for the last node. In each sum, the ranks wait for the
// slowest. If nothing is computed between the sums, that is once in a step. See docs/adr/0015.
func (w *World) sumsAtEnd(nodes []*graph.Node) bool {
	bytes := 0
	for _, node := range nodes {
		bytes += int(node.Shape().ByteSize())
	}
	return w.alone == aloneInMemory && !pjrt.Splits() && !pjrt.Overlaps() && bytes <= mostAtEnd
}

// startMean begins the mean of x over the ranks, and returns a function that returns it. Half
// precision travels as it is.
func (w *World) startMean(x *graph.Node) (finish func() *graph.Node) {
	if x.DType().IsHalfPrecision() {
		mean := collective.Over(w).AllReduce(x, collective.Mean)
		return func() *graph.Node { return mean }
	}
	return pjrt.StartAllReduceMean(x)
}

func concatenate(flat []*graph.Node) *graph.Node {
	if len(flat) == 1 {
		return flat[0]
	}
	return graph.Concatenate(flat, 0)
}

// changedBuffers lists the variables that the step changes without training them, such as the
// moving averages of batch normalization. Unless they are averaged, they differ between ranks.
func changedBuffers(store *model.Store, gradients []*graph.Node) []*model.Variable {
	if len(gradients) == 0 {
		return nil
	}
	g := gradients[0].Graph()
	var buffers []*model.Variable
	for v := range store.IterVariables() {
		if !v.Trainable && v.DType().IsFloat() && !isBookkeeping(v) && v.ChangedInGraph(g) {
			buffers = append(buffers, v)
		}
	}
	return buffers
}

// isBookkeeping reports whether the variable belongs to the trainer rather than to the model.
func isBookkeeping(v *model.Variable) bool {
	return isOwn(v) || topScope(v) == optimizer.Scope
}

// isOwn reports whether each rank has its own value of the variable: metrics, whose names GoMLX
// generates randomly in each process, and accumulated gradients.
func isOwn(v *model.Variable) bool {
	top := topScope(v)
	return top == metric.Scope || top == train.AccumulatedGradientsScope
}

func topScope(v *model.Variable) string {
	top, _, _ := strings.Cut(strings.TrimPrefix(v.Path(), "/"), "/")
	return top
}
