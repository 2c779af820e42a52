package distributed

import (
	"fmt"
	"path"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/collective"
	"gonbatch/distributed/pjrt"
)

// The graph-building functions in this file divide the update of the weights among the ranks, so
// that each keeps only its part of the optimizer's state: stage 1 of ZeRO (Rajbhandari et al.,
// ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020,
// https://arxiv.org/abs/1910.02054). A part is a vector: the elements of a variable are cut in the
// order of its memory into parts of the same length, one for each rank. Zeros fill up the last.
// With one rank, its part is the whole.

// PartLength returns the length of a rank's part of a variable with that many elements.
func (w *World) PartLength(size int) int { return (size + w.Size() - 1) / w.Size() }

// ScatterGradients is like AverageGradients, but returns only this rank's part of each mean, as a
// vector of PartLength elements. It uses a reduce-scatter instead of an all-reduce for each bucket,
// or, on CPUs, an exchange of the factors of a large gradient (see docs/adr/0032).
func (w *World) ScatterGradients(store *model.Store, gradients []*graph.Node) []*graph.Node {
	w.shareForStep(store, gradients)
	parts := w.scatter(store, gradients, w.factorsOf(gradients))
	if w.Size() == 1 {
		return parts
	}
	buffers := changedBuffers(store, gradients)
	nodes := make([]*graph.Node, len(buffers))
	for i, v := range buffers {
		nodes[i] = v.NodeValue(gradients[0])
	}
	for i, averaged := range w.average(nodes) {
		buffers[i].SetNodeValue(averaged)
	}
	return parts
}

// partBytes returns how large a bucket may be, of whole values. Even where a collective stops the
// program, it is limited: the memory of one bucket serves the next, and dividing the update is to
// save memory.
func partBytes() int { return min(bucketBytes(), overlappedBytes) }

// scatter returns this rank's parts of the means over the ranks. The ranks exchange the factors of
// those nodes that have some, by index.
func (w *World) scatter(store *model.Store, nodes []*graph.Node, products map[int]factors) []*graph.Node {
	parts := make([]*graph.Node, len(nodes))
	for i, x := range nodes {
		if x.Shape().IsZeroSize() {
			parts[i] = graph.Reshape(x, 0)
		}
	}
	for _, group := range buckets(nodes, sameBytes(partBytes()), w.alone) {
		if f, ok := products[group[0]]; ok && len(group) == 1 {
			parts[group[0]] = w.partOfProduct(store, f)
			continue
		}
		rows := make([]*graph.Node, len(group)) // A row is a rank's.
		for i, index := range group {
			rows[i] = graph.Reshape(w.padded(nodes[index]), w.Size(), -1)
		}
		mean := graph.Concatenate(rows, 1)
		if w.Size() > 1 {
			mean = w.meanPart(mean)
		}
		offset := 0
		for i, index := range group {
			length := rows[i].Shape().Dimensions[1]
			parts[index] = graph.Reshape(graph.Slice(mean, graph.AxisElem(0), graph.AxisRange(offset, offset+length)), length)
			offset += length
		}
	}
	return parts
}

// meanPart returns this rank's row of the mean of x over the ranks. Half precision travels as it
// is.
func (w *World) meanPart(x *graph.Node) *graph.Node {
	if x.DType().IsHalfPrecision() {
		return collective.Over(w).ReduceScatter(x, collective.Mean)
	}
	return pjrt.ReduceScatterMean(x)
}

// padded returns the elements of x as a vector, with zeros up to the end of the last part.
func (w *World) padded(x *graph.Node) *graph.Node {
	size := x.Shape().Size()
	flat := graph.Reshape(x, size)
	missing := w.PartLength(size)*w.Size() - size
	if missing == 0 {
		return flat
	}
	return graph.Concatenate([]*graph.Node{flat, graph.Zeros(x.Graph(), shapes.Make(x.DType(), missing))}, 0)
}

// PartsOf returns this rank's part of each node, all of which must be the same on all ranks.
func (w *World) PartsOf(store *model.Store, nodes []*graph.Node) []*graph.Node {
	parts := make([]*graph.Node, len(nodes))
	for i, p := range w.placesOf(store, nodes) {
		parts[i] = p.part()
	}
	return parts
}

// place is where this rank's part of a value is.
type place struct {
	flat   *graph.Node // The value's elements, with zeros up to the end of the last part.
	begin  *graph.Node // The first element.
	length int
}

// placesOf returns the places of this rank's parts of the nodes.
func (w *World) placesOf(store *model.Store, nodes []*graph.Node) []place {
	if len(nodes) == 0 {
		return nil
	}
	places := make([]place, len(nodes))
	rank := graph.ConvertDType(w.rankIn(store, nodes[0].Graph()), dtypes.Int64) // A weight may have more than 2^31 elements.
	for i, x := range nodes {
		length := w.PartLength(x.Shape().Size())
		places[i] = place{flat: w.padded(x), begin: graph.MulScalar(rank, length), length: length}
	}
	return places
}

func (p place) part() *graph.Node {
	if p.length == 0 {
		return p.flat
	}
	return graph.DynamicSlice(p.flat, []*graph.Node{p.begin}, []int{p.length})
}

// with returns the whole value with another part of this rank.
func (p place) with(part *graph.Node) *graph.Node {
	return graph.DynamicUpdateSlice(p.flat, part, []*graph.Node{p.begin})
}

// rankPath is the path of a variable with this rank's number. It is where GoMLX accumulates
// gradients, because checkpoints need not have those variables, and each rank has its own.
var rankPath = path.Join("/", train.AccumulatedGradientsScope, "#rank")

// rankIn returns this rank's number in a graph. It is not a constant, because all ranks must
// compile the same program.
func (w *World) rankIn(store *model.Store, g *graph.Graph) *graph.Node {
	v := store.VariableWithValue(rankPath, int32(w.Rank())).SetTrainable(false)
	if err := v.SetValue(tensors.FromScalar(int32(w.Rank()))); err != nil { // A checkpoint may have another rank's.
		panic(err)
	}
	return v.NodeValue(g)
}

// UpdateParts lets update change this rank's parts of the variables, and then gives all ranks the
// whole new values. While it runs, each variable appears in the store as a vector with this rank's
// part, under its own name. So an optimizer that is called there, with this rank's parts of the
// gradients, creates its state for the parts. It must compute each element of a weight from the
// same element of the gradient and of its state: Adam does.
//
// Each rank then has its own values of that state: see KeepOwn.
func (w *World) UpdateParts(store *model.Store, g *graph.Graph, variables []*model.Variable, update func()) {
	whole := make([]*graph.Node, len(variables))
	for i, v := range variables {
		whole[i] = v.NodeValue(g)
	}
	places := w.placesOf(store, whole)
	for i, p := range places {
		variables[i].SetNodeValue(p.part())
	}
	standingIn(store, g, variables, update)
	parts := make([]*graph.Node, len(variables))
	for i, v := range variables {
		parts[i] = v.NodeValue(g)
	}
	for i, updated := range w.gatherParts(parts, whole, places) {
		variables[i].SetNodeValue(updated)
	}
}

// wholeScope is where the variables are while others stand in for them.
var wholeScope = path.Join("/", optimizer.Scope, "whole")

// standingIn runs update while variables of the shapes of the parts stand in for the variables. In
// a graph, the path of a variable identifies its value, so the stand-ins have these values.
func standingIn(store *model.Store, g *graph.Graph, variables []*model.Variable, update func()) {
	loader := store.Loader()
	defer store.SetLoader(loader)
	store.SetLoader(nil) // The stand-ins have no values to load.
	moved := map[*model.Variable]string{}
	defer func() {
		store.SetLoader(nil)
		for _, v := range variables {
			if original, ok := moved[v]; ok {
				mustDo(store.DeleteVariable(original))
				mustDo(store.MoveVariable(v.Path(), original))
			}
		}
	}()
	for _, v := range variables {
		original, part := v.Path(), v.NodeValue(g)
		mustDo(store.MoveVariable(original, wholeScope+original))
		moved[v] = original
		store.VariableWithShape(original, part.Shape(), initializer.Zero)
	}
	store.SetLoader(loader)
	update()
}

func mustDo(err error) {
	if err != nil {
		panic(fmt.Errorf("distributed: exchange a variable for its part: %w", err))
	}
}

// gatherParts returns the whole values of which the ranks have the parts, in the shapes of like, in
// which they have these places.
func (w *World) gatherParts(parts, like []*graph.Node, places []place) []*graph.Node {
	whole := slices.Clone(like) // Those without elements stay.
	for _, group := range buckets(parts, sameBytes(partBytes()/w.Size()), w.alone/w.Size()) {
		if first := group[0]; len(group) == 1 && w.gathersInPlace(like[first]) {
			flat := pjrt.AllGatherInPlace(places[first].with(parts[first]))
			whole[first] = graph.Reshape(flat, like[first].Shape().Dimensions...)
			continue
		}
		row := make([]*graph.Node, len(group))
		for i, index := range group {
			row[i] = parts[index]
		}
		rows := graph.InsertAxes(concatenate(row), 0)
		if w.Size() > 1 {
			rows = pjrt.AllGather(rows)
		}
		offset := 0
		for _, index := range group {
			shape, length := like[index].Shape(), parts[index].Shape().Size()
			own := graph.Slice(rows, graph.AxisRange(), graph.AxisRange(offset, offset+length))
			flat := graph.Slice(graph.Reshape(own, length*w.Size()), graph.AxisRange(0, shape.Size()))
			whole[index] = graph.Reshape(flat, shape.Dimensions...)
			offset += length
		}
	}
	return whole
}

// gathersInPlace reports whether the parts of x can be gathered in the memory of x.
func (w *World) gathersInPlace(x *graph.Node) bool {
	return w.Size() > 1 && w.Devices() == 1 && !pjrt.Overlaps() && x.Shape().Size()%w.Size() == 0
}

// SumOverRanks is a graph-building function. It returns the sum of x over all ranks, such as that
// of the squares of their parts, computed inside the program.
func (w *World) SumOverRanks(x *graph.Node) *graph.Node {
	if w.Size() == 1 {
		return x
	}
	return pjrt.AllReduceSum(x)
}

// KeepOwn makes ShareVariables leave the variable as it is on each rank. All ranks must call it for
// the same variables.
func (w *World) KeepOwn(v *model.Variable) { w.shared.add(v) }

// CutPart returns this rank's part of a tensor, as a vector.
func (w *World) CutPart(whole *tensors.Tensor) (*tensors.Tensor, error) {
	shape, length := whole.Shape(), w.PartLength(whole.Size())
	part := tensors.FromShape(shapes.Make(shape.DType, length))
	if whole.Shape().IsZeroSize() {
		return part, nil
	}
	bytes := int(part.Shape().ByteSize())
	var writeErr error
	err := whole.ConstBytes(func(from []byte) {
		writeErr = part.MutableBytes(func(to []byte) {
			clear(to)
			begin := min(w.Rank()*bytes, len(from))
			copy(to, from[begin:min(begin+bytes, len(from))])
		})
	})
	if err == nil {
		err = writeErr
	}
	return part, err
}

// JoinParts returns the whole tensor of which each rank has a part, in the shape that it had before
// CutPart. It is collective; only rank 0 gets the tensor, the others nil.
func (w *World) JoinParts(part *tensors.Tensor, shape shapes.Shape) (*tensors.Tensor, error) {
	if shape.IsZeroSize() {
		if w.IsMain() {
			return tensors.FromShape(shape), nil
		}
		return nil, nil
	}
	var parts [][]byte
	var gatherErr error
	if err := part.ConstBytes(func(own []byte) { parts, gatherErr = w.AllGather(own) }); err != nil {
		return nil, err
	}
	if gatherErr != nil || !w.IsMain() {
		return nil, gatherErr
	}
	whole := tensors.FromShape(shape)
	err := whole.MutableBytes(func(to []byte) {
		for _, part := range parts {
			to = to[copy(to, part):]
		}
	})
	return whole, err
}
