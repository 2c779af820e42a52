package cnn

import (
	"github.com/gomlx/gomlx/core/graph"
)

// patches is a convolution as a product of two matrices: of what the kernel sees at each pixel of
// the result, [batch*height*width, rows*columns*in], with the weights as they are,
// [rows*columns*in, out]. All other algorithms rearrange or transform the weights. The image has
// its zeros already: see even.
type patches struct {
	convolution
	height, width int // of the result
}

func patchesOf(c convolution) patches {
	return patches{convolution: c.padFirst(), height: c.places(0), width: c.places(1)}
}

// places returns how often the kernel fits along an axis: the height or width of the result.
func (c convolution) places(axis int) int {
	size := c.x.Shape().Dimensions[1+axis] + c.padding[axis][0] + c.padding[axis][1]
	return (size-c.w.Shape().Dimensions[axis])/c.stride[axis] + 1
}

// For kernels of more weights than manyWeights and results of at most mostPixels, in the whole
// batch, patches are the fastest: to rearrange the weights would take longer than the products.
const (
	manyWeights = 1 << 19
	mostPixels  = 256
)

// fewPixels reports whether patches are the fastest algorithm.
func (c convolution) fewPixels() bool {
	pixels := c.x.Shape().Dimensions[0] * c.places(0) * c.places(1)
	return c.rows()*c.columns()*c.inChannels()*c.outChannels() > manyWeights && pixels <= mostPixels
}

func (p patches) batch() int { return p.x.Shape().Dimensions[0] }

// inAll is the number of values that the kernel sees.
func (p patches) inAll() int { return p.rows() * p.columns() * p.inChannels() }

func (p patches) node() *graph.Node {
	return operation{
		plain:     p.plainOf,
		forward:   p.product,
		gradients: []func(*graph.Node) *graph.Node{p.byImage, p.byKernel},
	}.of(p.x, p.w)
}

func (p patches) product() *graph.Node {
	y := graph.DotGeneral(p.matrix(), []int{1}, nil, p.weights(), []int{0}, nil)
	return graph.Reshape(y, p.batch(), p.height, p.width, p.outChannels())
}

func (p patches) weights() *graph.Node { return graph.Reshape(p.w, p.inAll(), p.outChannels()) }

// matrix returns what the kernel sees.
func (p patches) matrix() *graph.Node {
	var taps []*graph.Node
	for i := range p.rows() {
		for j := range p.columns() {
			rows := graph.AxisRange(i, i+span(p.height, p.stride[0])).Stride(p.stride[0])
			columns := graph.AxisRange(j, j+span(p.width, p.stride[1])).Stride(p.stride[1])
			taps = append(taps, graph.Slice(p.x, graph.AxisRange(), rows, columns, graph.AxisRange()))
		}
	}
	return graph.Reshape(graph.Concatenate(taps, -1), -1, p.inAll())
}

// span is the number of pixels from the first of n to the last one, if they are a stride apart.
func span(n, stride int) int { return (n-1)*stride + 1 }

// flat returns the gradient of the result as a matrix, [batch*height*width, out].
func (p patches) flat(v *graph.Node) *graph.Node { return graph.Reshape(v, -1, p.outChannels()) }

// byImage returns the gradient with respect to x, from that of the result: each tap's is put back
// where it was taken from.
func (p patches) byImage(v *graph.Node) *graph.Node {
	seen := graph.DotGeneral(p.flat(v), []int{1}, nil, p.weights(), []int{1}, nil)
	seen = graph.Reshape(seen, p.batch(), p.height, p.width, p.inAll())
	var sum *graph.Node
	for tap := range p.rows() * p.columns() {
		channels := graph.AxisRange(tap*p.inChannels(), (tap+1)*p.inChannels())
		part := p.putBack(graph.Slice(seen, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(), channels), tap)
		if sum == nil {
			sum = part
		} else {
			sum = graph.Add(sum, part)
		}
	}
	return sum
}

// putBack returns an image with zeros around and between the pixels that a tap sees.
func (p patches) putBack(pixels *graph.Node, tap int) *graph.Node {
	pad := func(axis, first, n int) graph.PadAxis {
		return graph.PadAxis{Start: first, End: p.x.Shape().Dimensions[1+axis] - first - span(n, p.stride[axis]), Interior: p.stride[axis] - 1}
	}
	zero := graph.ScalarZero(pixels.Graph(), pixels.DType())
	return graph.Pad(pixels, zero, graph.PadAxis{}, pad(0, tap/p.columns(), p.height), pad(1, tap%p.columns(), p.width))
}

// byKernel returns the gradient with respect to w.
func (p patches) byKernel(v *graph.Node) *graph.Node {
	products := graph.DotGeneral(p.matrix(), []int{0}, nil, p.flat(v), []int{0}, nil)
	return graph.Reshape(products, p.w.Shape().Dimensions...)
}
