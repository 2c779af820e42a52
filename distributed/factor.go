package distributed

import (
	"regexp"
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

// factorsOf returns the factors of a gradient if those of all ranks have at most half of its
// elements. To gather them, and to compute this rank's part of the whole product, is then faster
// than to reduce the gradient (Xie et al., Distributed machine learning via sufficient factor
// broadcasting, 2015, https://arxiv.org/abs/1511.08486). The product has as many multiplications
// either way: of fewer rows, for more examples.
func (w *World) factorsOf(gradient *graph.Node) (f factors, ok bool) {
	if w.Size() == 1 || pjrt.Overlaps() || w.Devices() > 1 || gradient.Rank() != 2 || gradient.Shape().Size() < minFactored {
		return f, false
	}
	if f, ok = parseFactors(gradient); !ok || gradient.Shape().Dimensions[0]%w.Size() != 0 {
		return f, false
	}
	return f, 2*w.Size()*(f.left.Shape().Size()+f.right.Shape().Size()) <= gradient.Shape().Size()
}

// swap and sumOfProducts match what GoMLX says of the nodes of the gradient of a weight, because it
// keeps their axes to itself. A gradient that they don't match is reduced.
var (
	swap          = regexp.MustCompile(`\bTranspose\(x=\[#\d+\], permutation=\[(0 1|1 0)\]\)`)
	sumOfProducts = regexp.MustCompile(`\bDotGeneral\(lhs=\[#\d+\], lhsContractingAxes=\[([\d ]+)\], lhsBatchAxes=\[\], rhs=\[#\d+\], rhsContractingAxes=\[([\d ]+)\], rhsBatchAxes=\[\], config=\{AccumulatorDType:InvalidDType OutputDType:InvalidDType\}\)`)
)

// parseFactors reports false for a node that isn't the product of two matrices.
func parseFactors(x *graph.Node) (f factors, ok bool) {
	swapped := false
	for x.Type() == graph.NodeTypeTranspose {
		m := swap.FindStringSubmatch(x.String())
		if m == nil || x.Rank() != 2 {
			return f, false
		}
		swapped = swapped != (m[1] == "1 0")
		x = x.Inputs()[0]
	}
	m := sumOfProducts.FindStringSubmatch(x.String())
	if x.Type() != graph.NodeTypeDotGeneral || m == nil || x.Rank() != 2 || x.DType() != dtypes.Float32 && x.DType() != dtypes.Float64 {
		return f, false
	}
	for i, side := range []**graph.Node{&f.left, &f.right} {
		if *side, ok = flatRows(x.Inputs()[i], strings.Fields(m[1+i])); !ok || (*side).DType() != x.DType() {
			return f, false
		}
	}
	if swapped {
		f.left, f.right = f.right, f.left
	}
	return f, true
}

// flatRows returns x as a matrix whose rows are those along the axes, which must be all but the
// last.
func flatRows(x *graph.Node, axes []string) (*graph.Node, bool) {
	for i, axis := range axes {
		if axis != strconv.Itoa(i) {
			return nil, false
		}
	}
	if len(axes) != x.Rank()-1 {
		return nil, false
	}
	return graph.Reshape(x, -1, x.Shape().Dimensions[len(axes)]), true
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
