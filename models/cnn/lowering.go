package cnn

import (
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/forecast"
	"gonbatch/internal/layerhooks"
)

// convolution is a convolution of x, [batch, height, width, in], with w, [rows, columns, in, out].
type convolution struct {
	x, w    *graph.Node
	stride  [2]int
	padding [2][2]int // zeros before and after the rows, and the columns
}

// node computes the convolution with the fastest algorithm for its sizes.
func (c convolution) node() *graph.Node {
	switch odd := c.rows()%2 == 1 && c.columns()%2 == 1; {
	case fast(c.x) && c.pointwise():
		return c.asDot()
	case fast(c.x) && c.tiled():
		return c.byTiles()
	case odd && c.byLibrary():
		return c.plain(c.x, c.w)
	case fast(c.x) && c.fewPixels():
		return patchesOf(c).node()
	case !odd:
		return c.even()
	case !fast(c.x):
		return c.plain(c.x, c.w)
	case c.inChannels() <= maxTapChannels && c.stride == [2]int{1, 1}:
		return operation{plain: c.plainOf, forward: c.byTaps}.of(c.x, c.w)
	}
	return c.plain(c.x, c.w)
}

// byLibrary reports whether a library computes the convolution, faster than the algorithms of this
// package.
func (c convolution) byLibrary() bool {
	size := c.x.Shape().Dimensions
	return c.x.DType() == dtypes.Float32 && layerhooks.Convolves(layerhooks.Convolution{
		Batch: size[0], Height: size[1], Width: size[2], In: c.inChannels(), Out: c.outChannels(),
		Rows: c.rows(), Columns: c.columns(), Stride: c.stride, Padding: c.padding,
	})
}

// plain computes the convolution as GoMLX does.
func (c convolution) plain(x, w *graph.Node) *graph.Node {
	return graph.Convolve(x, w).StridePerAxis(c.stride[:]...).PaddingPerDim(c.padding[:]).Done()
}

func (c convolution) plainOf(inputs []*graph.Node) *graph.Node { return c.plain(inputs[0], inputs[1]) }

// even computes a convolution whose kernel has an even size. GoMLX 0.28's gradient with respect to
// x is off by one pixel there, and panics if the padding is as large as the kernel less one. So x
// is padded first, and the gradient is computed here: it is the transposed convolution.
func (c convolution) even() *graph.Node {
	c = c.padFirst()
	return operation{plain: c.plainOf, gradients: []func(*graph.Node) *graph.Node{c.byImage}}.of(c.x, c.w)
}

// padFirst returns the same convolution, of an image that has its zeros.
func (c convolution) padFirst() convolution {
	c.x = padSpatially(c.x, c.padding[0][0], c.padding[0][1], c.padding[1][0], c.padding[1][1])
	c.padding = [2][2]int{}
	return c
}

// byImage returns the gradient with respect to x, without padding, from that of the result. Pixels
// after the last place of the kernel have none.
func (c convolution) byImage(v *graph.Node) *graph.Node {
	y := transposed{x: v, w: graph.TransposeAllAxes(c.w, 0, 1, 3, 2), stride: c.stride}.node()
	size, all := y.Shape().Dimensions, c.x.Shape().Dimensions
	return padSpatially(y, 0, all[1]-size[1], 0, all[2]-size[2])
}

func (c convolution) rows() int        { return c.w.Shape().Dimensions[0] }
func (c convolution) columns() int     { return c.w.Shape().Dimensions[1] }
func (c convolution) inChannels() int  { return c.w.Shape().Dimensions[2] }
func (c convolution) outChannels() int { return c.w.Shape().Dimensions[3] }

// pointwise reports whether each output depends on one pixel only.
func (c convolution) pointwise() bool {
	return c.rows() == 1 && c.columns() == 1 && c.padding == [2][2]int{}
}

// asDot computes a pointwise convolution as a product of two matrices.
func (c convolution) asDot() *graph.Node {
	x := c.x
	if c.stride != [2]int{1, 1} {
		x = graph.Slice(x, graph.AxisRange(), graph.AxisRange().Stride(c.stride[0]), graph.AxisRange().Stride(c.stride[1]), graph.AxisRange())
	}
	size := x.Shape().Dimensions
	flat := graph.Reshape(x, -1, c.inChannels())
	y := graph.Dot(flat, graph.Reshape(c.w, c.inChannels(), c.outChannels())).Product()
	return graph.Reshape(y, size[0], size[1], size[2], c.outChannels())
}

// tiled reports whether the kernel sees each pixel once, as with the patches of a Vision
// Transformer.
func (c convolution) tiled() bool {
	size := c.x.Shape().Dimensions
	return c.stride == [2]int{c.rows(), c.columns()} && c.padding == [2][2]int{} && size[1]%c.rows() == 0 && size[2]%c.columns() == 0
}

// byTiles computes a tiled convolution as a product of two matrices.
func (c convolution) byTiles() *graph.Node {
	size, rows, columns := c.x.Shape().Dimensions, c.rows(), c.columns()
	height, width, pixels := size[1]/rows, size[2]/columns, rows*columns*c.inChannels()
	x := graph.Reshape(c.x, size[0], height, rows, width, columns, c.inChannels())
	x = graph.Reshape(graph.TransposeAllAxes(x, 0, 1, 3, 2, 4, 5), -1, pixels)
	y := graph.Dot(x, graph.Reshape(c.w, pixels, c.outChannels())).Product()
	return graph.Reshape(y, size[0], height, width, c.outChannels())
}

// maxTapChannels is the largest number of input channels for which byTaps is faster.
const maxTapChannels = 1

// byTaps adds up the products of each tap of the kernel with the shifted image. XLA compiles that
// to one loop of fused multiply-adds. A matrix product over a few channels would mostly rearrange
// data.
func (c convolution) byTaps() *graph.Node {
	x := padSpatially(c.x, c.padding[0][0], c.padding[0][1], c.padding[1][0], c.padding[1][1])
	size := x.Shape().Dimensions
	height, width := size[1]-c.rows()+1, size[2]-c.columns()+1
	var sum *graph.Node
	for i := range c.rows() {
		for j := range c.columns() {
			for in := range c.inChannels() {
				pixel := graph.Slice(x, graph.AxisRange(), graph.AxisRange(i, i+height), graph.AxisRange(j, j+width), graph.AxisElem(in))
				product := graph.Mul(pixel, graph.Slice(c.w, graph.AxisElem(i), graph.AxisElem(j), graph.AxisElem(in)))
				if sum == nil {
					sum = product
				} else {
					sum = graph.Add(sum, product)
				}
			}
		}
	}
	return sum
}

// padSpatially pads an image with zeros. (The gradient of GoMLX 0.28's Pad needs all axes.)
func padSpatially(x *graph.Node, top, bottom, left, right int) *graph.Node {
	if top == 0 && bottom == 0 && left == 0 && right == 0 {
		return x
	}
	return graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), graph.PadAxis{}, graph.PadAxis{Start: top, End: bottom}, graph.PadAxis{Start: left, End: right}, graph.PadAxis{})
}

// fast reports whether XLA computes x on a CPU, with full precision. Only then are the algorithms
// of this package faster.
func fast(x *graph.Node) bool {
	return (x.DType() == dtypes.Float32 || x.DType() == dtypes.Float64) && onCPU(x.Graph().Backend())
}

// onCPU reports whether the backend is XLA on CPUs and the graph is for it: a forecast builds a
// GPU's graph.
func onCPU(backend compute.Backend) bool {
	return !forecast.ForGPU.Load() && backend.Name() == "xla" && strings.Contains(strings.ToLower(backend.DeviceDescription(0)), "cpu")
}
