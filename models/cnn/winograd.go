package cnn

import (
	"github.com/gomlx/gomlx/core/graph"
)

// Winograd's minimal algorithm F(2x2, 3x3): each tile of 4x4 pixels gives 2x2 outputs of a 3x3
// convolution, with 16 products per channel instead of 36. The products are 16 matrix
// multiplications. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR
// 2016 (https://arxiv.org/abs/1509.09308), section 4.1.

// tiling describes how an image is cut into tiles.
type tiling struct {
	batch, height, width int // of the output
	pad                  int // zeros around the image
}

func (t tiling) rows() int    { return (t.height + 1) / 2 }
func (t tiling) columns() int { return (t.width + 1) / 2 }

// winograd convolves x, [batch, height, width, in], padded with pad zeros on each side, with w, [3,
// 3, in, out].
func winograd(x, w *graph.Node, pad int) *graph.Node {
	t := tilingOf(x, pad)
	products := graph.DotGeneral(stackTiles(t.images(x)), []int{2}, []int{0}, kernels(w), []int{1}, []int{0})
	return t.outputs(t.unstack(products))
}

func tilingOf(x *graph.Node, pad int) tiling {
	size := x.Shape().Dimensions
	return tiling{batch: size[0], height: size[1] + 2*pad - 2, width: size[2] + 2*pad - 2, pad: pad}
}

// winogradByImage returns the gradient of winograd with respect to x: the convolution of v with the
// kernels, each rotated by 180 degrees. To rotate a transformed kernel, swap its first and last
// rows and its first and last columns. Here the same ends of v are swapped instead, so that the
// kernels are transformed only once for both directions.
func winogradByImage(w, v *graph.Node, pad int) *graph.Node {
	t := tilingOf(v, 2-pad)
	images := stackTiles(swapEnds(t.images(v)))
	products := graph.DotGeneral(images, []int{2}, []int{0}, kernels(w), []int{2}, []int{0})
	return t.outputs(swapEnds(t.unstack(products)))
}

func swapEnds(tile [4][4]*graph.Node) [4][4]*graph.Node {
	tile[0], tile[3] = tile[3], tile[0]
	for i := range tile {
		tile[i][0], tile[i][3] = tile[i][3], tile[i][0]
	}
	return tile
}

// winogradByKernel returns the gradient of winograd with respect to w.
func winogradByKernel(x, v *graph.Node, pad int) *graph.Node {
	t := tilingOf(x, pad)
	products := graph.DotGeneral(stackTiles(t.images(x)), []int{1}, []int{0}, stackTiles(t.products(v)), []int{1}, []int{0})
	return kernelGradient(products)
}

// images transforms the tiles of an image. Each of the 16 results has one pixel per tile.
func (t tiling) images(x *graph.Node) [4][4]*graph.Node {
	x = padSpatially(x, t.pad, t.pad+t.height%2, t.pad, t.pad+t.width%2)
	var pixel [4][4]*graph.Node
	for i := range 4 {
		for j := range 4 {
			rows := graph.AxisRange(i, i+2*t.rows()-1).Stride(2)
			columns := graph.AxisRange(j, j+2*t.columns()-1).Stride(2)
			pixel[i][j] = graph.Slice(x, graph.AxisRange(), rows, columns, graph.AxisRange())
		}
	}
	return twice4(pixel, func(d [4]*graph.Node) [4]*graph.Node {
		return [4]*graph.Node{graph.Sub(d[0], d[2]), graph.Add(d[1], d[2]), graph.Sub(d[2], d[1]), graph.Sub(d[1], d[3])}
	})
}

// kernels transforms the kernels. The result is [16, in, out].
func kernels(w *graph.Node) *graph.Node {
	transform := func(g [3]*graph.Node) [4]*graph.Node {
		ends := graph.Add(g[0], g[2])
		return [4]*graph.Node{g[0], half(graph.Add(ends, g[1])), half(graph.Sub(ends, g[1])), g[2]}
	}
	var columns [4][3]*graph.Node
	for j := range 3 {
		for i, u := range transform([3]*graph.Node{tap(w, 0, j), tap(w, 1, j), tap(w, 2, j)}) {
			columns[i][j] = u
		}
	}
	var all []*graph.Node
	for i := range 4 {
		row := transform(columns[i])
		all = append(all, row[:]...)
	}
	return graph.Stack(all, 0)
}

// tap returns one pixel of the kernels, [in, out].
func tap(w *graph.Node, i, j int) *graph.Node {
	size := w.Shape().Dimensions
	return graph.Reshape(graph.Slice(w, graph.AxisElem(i), graph.AxisElem(j)), size[2], size[3])
}

// outputs transforms the products into the image.
func (t tiling) outputs(m [4][4]*graph.Node) *graph.Node {
	channels := lastDimension(m[0][0])
	transform := func(m [4]*graph.Node) [2]*graph.Node {
		return [2]*graph.Node{graph.Add(graph.Add(m[0], m[1]), m[2]), graph.Sub(graph.Sub(m[1], m[2]), m[3])}
	}
	var rows [2][4]*graph.Node
	for j := range 4 {
		for i, r := range transform([4]*graph.Node{m[0][j], m[1][j], m[2][j], m[3][j]}) {
			rows[i][j] = r
		}
	}
	var pairs []*graph.Node
	for i := range 2 {
		columns := transform(rows[i])
		pairs = append(pairs, graph.Stack(columns[:], 3)) // [batch, rows, columns, 2, channels]
	}
	y := graph.Reshape(graph.Stack(pairs, 2), t.batch, 2*t.rows(), 2*t.columns(), channels)
	if t.height%2 == 0 && t.width%2 == 0 {
		return y
	}
	return graph.Slice(y, graph.AxisRange(), graph.AxisRange(0, t.height), graph.AxisRange(0, t.width), graph.AxisRange())
}

// products returns the gradient of outputs.
func (t tiling) products(v *graph.Node) (m [4][4]*graph.Node) {
	v = padSpatially(v, 0, t.height%2, 0, t.width%2)
	pixel := func(i, j int) *graph.Node {
		return graph.Slice(v, graph.AxisRange(), graph.AxisRange(i).Stride(2), graph.AxisRange(j).Stride(2), graph.AxisRange())
	}
	transform := func(y [2]*graph.Node) [4]*graph.Node {
		return [4]*graph.Node{y[0], graph.Add(y[0], y[1]), graph.Sub(y[0], y[1]), graph.Neg(y[1])}
	}
	var columns [4][2]*graph.Node
	for j := range 2 {
		for i, m := range transform([2]*graph.Node{pixel(0, j), pixel(1, j)}) {
			columns[i][j] = m
		}
	}
	for i := range 4 {
		m[i] = transform(columns[i])
	}
	return m
}

// kernelGradient returns the gradient of kernels, [3, 3, in, out].
func kernelGradient(products *graph.Node) *graph.Node {
	size := products.Shape().Dimensions
	u := graph.Reshape(products, 4, 4, size[1], size[2])
	transform := func(u [4]*graph.Node) [3]*graph.Node {
		middle, difference := half(graph.Add(u[1], u[2])), half(graph.Sub(u[1], u[2]))
		return [3]*graph.Node{graph.Add(u[0], middle), difference, graph.Add(middle, u[3])}
	}
	var rows [3][4]*graph.Node
	for j := range 4 {
		for i, r := range transform([4]*graph.Node{tap(u, 0, j), tap(u, 1, j), tap(u, 2, j), tap(u, 3, j)}) {
			rows[i][j] = r
		}
	}
	var all []*graph.Node
	for i := range 3 {
		columns := transform(rows[i])
		all = append(all, columns[:]...)
	}
	return graph.Reshape(graph.Stack(all, 0), 3, 3, size[1], size[2])
}

// unstack splits [16, tiles, channels] into its 16 parts.
func (t tiling) unstack(products *graph.Node) (parts [4][4]*graph.Node) {
	channels := lastDimension(products)
	for i := range 4 {
		for j := range 4 {
			part := graph.Slice(products, graph.AxisElem(4*i+j))
			parts[i][j] = graph.Reshape(part, t.batch, t.rows(), t.columns(), channels)
		}
	}
	return parts
}

// stackTiles is the inverse of unstack.
func stackTiles(parts [4][4]*graph.Node) *graph.Node {
	var all []*graph.Node
	for i := range 4 {
		for j := range 4 {
			all = append(all, graph.Reshape(parts[i][j], -1, lastDimension(parts[i][j])))
		}
	}
	return graph.Stack(all, 0)
}

// twice4 transforms the columns of a tile, and then its rows.
func twice4(tile [4][4]*graph.Node, transform func([4]*graph.Node) [4]*graph.Node) (out [4][4]*graph.Node) {
	for j := range 4 {
		for i, t := range transform([4]*graph.Node{tile[0][j], tile[1][j], tile[2][j], tile[3][j]}) {
			out[i][j] = t
		}
	}
	for i := range 4 {
		out[i] = transform(out[i])
	}
	return out
}

func half(x *graph.Node) *graph.Node { return graph.MulScalar(x, 0.5) }

// padSpatially pads an image with zeros.
func padSpatially(x *graph.Node, top, bottom, left, right int) *graph.Node {
	if top == 0 && bottom == 0 && left == 0 && right == 0 {
		return x
	}
	return graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), graph.PadAxis{}, graph.PadAxis{Start: top, End: bottom}, graph.PadAxis{Start: left, End: right})
}
