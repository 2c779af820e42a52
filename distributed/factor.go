package distributed

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed/pjrt"
)

// factors are two matrices whose product is the gradient of a weight: the inputs of a layer and the
// gradients of its outputs, with a row for each example. The gradient has a row for each column of
// left, and a column for each of right.
type factors struct{ left, right *graph.Node }

// minFactored is from how many elements on a gradient may be exchanged by its factors: a smaller
// one takes no longer to reduce.
const minFactored = 1 << 18

// factorsOf returns the factors of those gradients, by index, for which these of all ranks have at
// most half of the gradient's elements. To gather them, and to compute this rank's part of the
// whole product, is then faster than to reduce the gradient (Xie et al., Distributed machine
// learning via sufficient factor broadcasting, 2015, https://arxiv.org/abs/1511.08486). The product
// has as many multiplications either way: of fewer rows, for more examples.
//
// It is collective: if the ranks have different numbers of examples, it returns none.
func (w *World) factorsOf(gradients []*graph.Node) map[int]factors {
	if w.Size() == 1 || pjrt.Overlaps() || w.Devices() > 1 {
		return nil
	}
	all, examples := map[int]factors{}, make([]int, len(gradients))
	for i, x := range gradients {
		f, ok := parseFactors(x)
		if !ok || x.Shape().Size() < minFactored || x.Shape().Dimensions[0]%w.Size() != 0 || 2*w.Size()*(f.left.Shape().Size()+f.right.Shape().Size()) > x.Shape().Size() {
			continue
		}
		all[i], examples[i] = f, f.left.Shape().Dimensions[0]
	}
	every, err := gather(w, examples)
	if err != nil {
		panic(fmt.Errorf("distributed: compare the numbers of examples over the ranks: %w", err))
	}
	if slices.ContainsFunc(every, func(other []int) bool { return !slices.Equal(other, examples) }) {
		return nil
	}
	return all
}

// swap and sumOfProducts match what GoMLX says of the nodes of the gradient of a weight, because it
// keeps their axes to itself. A gradient that they don't match is reduced.
var (
	swap          = regexp.MustCompile(`\bTranspose\(x=\[#\d+\], permutation=\[(0 1|1 0)\]\)`)
	sumOfProducts = regexp.MustCompile(`\bDotGeneral\(lhs=\[#\d+\], lhsContractingAxes=\[([\d ]+)\], lhsBatchAxes=\[\], rhs=\[#\d+\], rhsContractingAxes=\[([\d ]+)\], rhsBatchAxes=\[\], config=\{AccumulatorDType:InvalidDType OutputDType:InvalidDType\}\)`)
)

// parseFactors reports false for a node that isn't the product of two matrices.
func parseFactors(x *graph.Node) (factors, bool) {
	swapped := false
	for x.Type() == graph.NodeTypeTranspose && x.Rank() == 2 {
		m := swap.FindStringSubmatch(x.String())
		if m == nil {
			return factors{}, false
		}
		swapped = swapped != (m[1] == "1 0")
		x = x.Inputs()[0]
	}
	if x.Type() != graph.NodeTypeDotGeneral || x.Rank() != 2 || x.DType() != dtypes.Float32 && x.DType() != dtypes.Float64 {
		return factors{}, false
	}
	m := sumOfProducts.FindStringSubmatch(x.String())
	if m == nil {
		return factors{}, false
	}
	left, right := x.Inputs()[0], x.Inputs()[1]
	if !allButLast(left, m[1]) || !allButLast(right, m[2]) || left.DType() != x.DType() || right.DType() != x.DType() {
		return factors{}, false
	}
	if swapped {
		left, right = right, left
	}
	return factors{left: flatRows(left), right: flatRows(right)}, true
}

// allButLast reports whether the axes, such as "0 1", are all those of x but the last, in order.
func allButLast(x *graph.Node, axes string) bool {
	fields := strings.Fields(axes)
	for i, axis := range fields {
		if axis != strconv.Itoa(i) {
			return false
		}
	}
	return len(fields) == x.Rank()-1 && !x.Shape().IsZeroSize()
}

// flatRows returns x as a matrix, whose columns are those along the last axis of x.
func flatRows(x *graph.Node) *graph.Node {
	return graph.Reshape(x, -1, x.Shape().Dimensions[x.Rank()-1])
}

// partOfProduct returns this rank's part of the mean over the ranks of a gradient with the factors.
func (w *World) partOfProduct(store *model.Store, f factors) *graph.Node {
	left, right := pjrt.AllGather(f.left), pjrt.AllGather(f.right)
	width := left.Shape().Dimensions[1] / w.Size()
	rank := w.rankIn(store, left.Graph())
	left = graph.DynamicSlice(left, []*graph.Node{graph.ZerosLike(rank), graph.MulScalar(rank, width)}, []int{left.Shape().Dimensions[0], width})
	product := graph.DotGeneral(left, []int{0}, nil, right, []int{0}, nil)
	return graph.MulScalar(graph.Reshape(product, product.Shape().Size()), 1/float64(w.Size()))
}
