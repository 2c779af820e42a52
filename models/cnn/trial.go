package cnn

import "github.com/gomlx/gomlx/core/graph"

func (c convolution) taps() []*graph.Node {
	x := padSpatially(c.x, c.padding[0][0], c.padding[0][1], c.padding[1][0], c.padding[1][1])
	size := x.Shape().Dimensions
	height, width := size[1]-c.rows()+1, size[2]-c.columns()+1
	var all []*graph.Node
	for i := range c.rows() {
		for j := range c.columns() {
			p := graph.Slice(x, graph.AxisRange(), graph.AxisRange(i, i+height).Stride(c.stride[0]), graph.AxisRange(j, j+width).Stride(c.stride[1]))
			all = append(all, p)
		}
	}
	return all
}

func (c convolution) patches() *graph.Node {
	return graph.Reshape(graph.Concatenate(c.taps(), 3), -1, c.rows()*c.columns()*c.inChannels())
}

func (c convolution) byPatches() *graph.Node {
	size := c.taps()[0].Shape().Dimensions
	y := graph.Dot(c.patches(), graph.Reshape(c.w, -1, c.outChannels())).Product()
	return graph.Reshape(y, size[0], size[1], size[2], c.outChannels())
}

func (c convolution) kernelByPatches(v *graph.Node) *graph.Node {
	d := graph.DotGeneral(c.patches(), []int{0}, nil, graph.Reshape(v, -1, c.outChannels()), []int{0}, nil)
	return graph.Reshape(d, c.w.Shape().Dimensions...)
}

func (c convolution) kernelByPatchesT(v *graph.Node) *graph.Node {
	d := graph.DotGeneral(graph.Reshape(v, -1, c.outChannels()), []int{0}, nil, c.patches(), []int{0}, nil)
	return graph.Reshape(graph.Transpose(d, 0, 1), c.w.Shape().Dimensions...)
}

func (c convolution) kernelByShifts(v *graph.Node) *graph.Node {
	v = graph.Reshape(v, -1, c.outChannels())
	var all []*graph.Node
	for _, tap := range c.taps() {
		all = append(all, graph.DotGeneral(graph.Reshape(tap, -1, c.inChannels()), []int{0}, nil, v, []int{0}, nil))
	}
	return graph.Reshape(graph.Stack(all, 0), c.w.Shape().Dimensions...)
}

// imageByColumns: dot with all taps, then add up dilated.
func (c convolution) imageByColumns(v *graph.Node) *graph.Node {
	size := c.x.Shape().Dimensions
	vs := v.Shape().Dimensions
	k := c.rows() * c.columns()
	d := graph.DotGeneral(graph.Reshape(v, -1, c.outChannels()), []int{1}, nil, graph.Reshape(c.w, k*c.inChannels(), c.outChannels()), []int{1}, nil)
	d = graph.Reshape(d, vs[0], vs[1], vs[2], k, c.inChannels())
	var sum *graph.Node
	zero := graph.ScalarZero(v.Graph(), v.DType())
	for i := range c.rows() {
		for j := range c.columns() {
			part := graph.Reshape(graph.Slice(d, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(), graph.AxisElem(i*c.columns()+j)), vs[0], vs[1], vs[2], c.inChannels())
			s := i - c.padding[0][0]
			u := j - c.padding[1][0]
			part = graph.Pad(part, zero, graph.PadAxis{}, graph.PadAxis{Start: s, End: size[1] - s - (vs[1]-1)*c.stride[0] - 1, Interior: c.stride[0] - 1},
				graph.PadAxis{Start: u, End: size[2] - u - (vs[2]-1)*c.stride[1] - 1, Interior: c.stride[1] - 1})
			if sum == nil {
				sum = part
			} else {
				sum = graph.Add(sum, part)
			}
		}
	}
	return sum
}

// imageByPhases, stride 2, kernel 3, pad 1, even size.
func (c convolution) imageByPhases(v *graph.Node) *graph.Node {
	size := c.x.Shape().Dimensions
	vs := v.Shape().Dimensions
	rev := graph.Transpose(graph.Reverse(c.w, 0, 1), 2, 3)
	// row phase a: x row 2i+a gets taps r with (2i+a+1-r) even: a=0: r=1 -> v[i]; a=1: r=0 -> v[i+1], r=2 -> v[i].
	var rows []*graph.Node
	for a := range 2 {
		var cols []*graph.Node
		for b := range 2 {
			w := rev
			pad := [2][2]int{}
			if a == 0 {
				w = graph.Slice(w, graph.AxisRange(1, 2))
			} else {
				w = graph.Slice(w, graph.AxisRange().Stride(2))
				pad[0][1] = 1
			}
			if b == 0 {
				w = graph.Slice(w, graph.AxisRange(), graph.AxisRange(1, 2))
			} else {
				w = graph.Slice(w, graph.AxisRange(), graph.AxisRange().Stride(2))
				pad[1][1] = 1
			}
			cc := convolution{x: v, w: w, stride: [2]int{1, 1}, padding: pad}
			if a+b == 0 {
				cols = append(cols, cc.asDot())
			} else {
				cols = append(cols, cc.byPatches())
			}
		}
		rows = append(rows, graph.Stack(cols, 3))
	}
	_ = vs
	return graph.Reshape(graph.Stack(rows, 2), size...)
}
