package pjrt

// #include "kernels.h"
import "C"

import (
	"strings"

	"gonbatch/distributed/stablehlo"
	"gonbatch/internal/layerhooks"
)

// The operations of a convolution.
const (
	forward = iota
	backwardData
	backwardWeights
)

// convolution is a convolution of images [batch, height, width, in] to [batch, outHeight, outWidth,
// out], or one of its gradients.
type convolution struct {
	operation                              int
	batch, height, width, in               int
	outHeight, outWidth, out               int
	rows, columns                          int // of the kernel
	strides, dilations, zeros, zerosBehind [2]int
	swapped                                bool // The weights are [rows, columns, out, in], not [rows, columns, in, out].
	alone                                  bool // The calling thread computes it alone: those of other devices do the same.
}

// form returns the numbers that a kernel reads; onednn/convolution.c has the same order.
func (c convolution) form() []int {
	form := []int{c.operation, c.batch, c.height, c.width, c.in, c.outHeight, c.outWidth, c.out, c.rows, c.columns}
	for _, pair := range [][2]int{c.strides, c.dilations, c.zeros, c.zerosBehind} {
		form = append(form, pair[:]...)
	}
	return append(form, number(c.swapped), number(c.alone))
}

// number is a truth value for a kernel.
func number(of bool) int {
	if of {
		return 1
	}
	return 0
}

// Convolves reports whether a kernel computes a convolution in the programs that are compiled from
// now on.
func Convolves(of layerhooks.Convolution) bool {
	if !HasKernels() {
		return false
	}
	c := convolution{
		operation: forward, batch: of.Batch, height: of.Height, width: of.Width, in: of.In, out: of.Out, rows: of.Rows, columns: of.Columns,
		strides: of.Stride, dilations: [2]int{1, 1}, zeros: [2]int{of.Padding[0][0], of.Padding[1][0]}, zerosBehind: [2]int{of.Padding[0][1], of.Padding[1][1]},
	}
	reach := c.kernelReach()
	c.outHeight = (c.height+c.zeros[0]+c.zerosBehind[0]-reach[0])/c.strides[0] + 1
	c.outWidth = (c.width+c.zeros[1]+c.zerosBehind[1]-reach[1])/c.strides[1] + 1
	return c.isFast()
}

// isFast asks the kernel.
func (c convolution) isFast() bool {
	var form []C.int64_t
	for _, n := range c.form() {
		form = append(form, C.int64_t(n))
	}
	return C.gb_convolution_is_fast(&form[0], C.int64_t(len(form))) != 0
}

// convolution returns the call of a kernel for a convolution, if a kernel can compute it: on one
// device if p is nil.
func (p *perDevice) convolution(o *stablehlo.Op) []*stablehlo.Op {
	if p == nil {
		return convolutionCall(o, false)
	}
	its := convolutionCut(o)
	in, ok := p.local(o, its)
	if !ok {
		return nil
	}
	ops := convolutionCall(in, true)
	if ops == nil {
		return nil
	}
	return p.divide(o, in, its, ops)
}

func convolutionCall(o *stablehlo.Op, alone bool) []*stablehlo.Op {
	c, ok := parseConvolution(o)
	c.alone = alone
	if !ok || !c.isFast() {
		return nil
	}
	weights := o.Operand(1)
	if c.operation != backwardData {
		return kernelCall(convolutionTarget, c.form(), o.Operand(0), weights, resultOf(o))
	}
	// XLA's convolution has the kernel reversed. XLA removes a pair of reversals.
	reversed := stablehlo.Value{Name: own("weights", o.Results[0]), Type: weights.Type}
	reversal := stablehlo.New("stablehlo.reverse", "{ dimensions = array<i64: 0, 1> }", []stablehlo.Value{weights}, reversed)
	return append([]*stablehlo.Op{reversal}, kernelCall(convolutionTarget, c.form(), o.Operand(0), reversed, resultOf(o))...)
}

// convolutionAttributes are those of StableHLO's convolution, for each of two axes.
type convolutionAttributes struct{ strides, aDilation, bDilation, before, behind [2]int }

// The layouts of dimensions that GoMLX writes.
const (
	plainLayout    = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
	swappedLayout  = "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]"
	gradientLayout = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"
)

// parseConvolution reports false for a convolution of another form than a kernel knows.
func parseConvolution(o *stablehlo.Op) (c convolution, ok bool) {
	a, b, out := dimensionsOf(o.Types[0]), dimensionsOf(o.Types[1]), dimensionsOf(o.Out[0])
	at, ok := convolutionAttributesOf(o)
	if !ok || len(a) != 4 || len(b) != 4 || len(out) != 4 {
		return c, false
	}
	switch {
	case strings.Contains(o.Attributes, gradientLayout):
		return gradientOfWeights(a, b, out, at)
	case !strings.Contains(o.Attributes, plainLayout) && !strings.Contains(o.Attributes, swappedLayout):
		return c, false
	}
	swapped := strings.Contains(o.Attributes, swappedLayout)
	if swapped || at.aDilation != [2]int{1, 1} {
		if c, ok := gradientOfImages(a, b, out, at, !swapped); ok {
			return c, true
		}
	}
	return forwardConvolution(a, b, out, at, swapped)
}

func convolutionAttributesOf(o *stablehlo.Op) (at convolutionAttributes, ok bool) {
	var padding [4]int
	for name, into := range map[string][]int{"window_strides": at.strides[:], "lhs_dilation": at.aDilation[:], "rhs_dilation": at.bDilation[:], "padding": padding[:],
		"feature_group_count": make([]int, 1), "batch_group_count": make([]int, 1)} {
		numbers := o.Ints(name)
		if len(numbers) != len(into) || len(into) == 1 && numbers[0] != 1 {
			return at, false
		}
		copy(into, numbers)
	}
	at.before, at.behind = [2]int{padding[0], padding[2]}, [2]int{padding[1], padding[3]}
	return at, strings.Contains(o.Attributes, "window_reversal = array<i1: false, false>")
}

func forwardConvolution(a, b, out []int, at convolutionAttributes, swapped bool) (convolution, bool) {
	c := convolution{
		operation: forward, batch: a[0], height: a[1], width: a[2], in: a[3], outHeight: out[1], outWidth: out[2], out: out[3],
		rows: b[0], columns: b[1], strides: at.strides, dilations: at.bDilation, zeros: at.before, zerosBehind: at.behind, swapped: swapped,
	}
	return c, at.aDilation == [2]int{1, 1} && min(at.before[0], at.before[1], at.behind[0], at.behind[1]) >= 0
}

// gradientOfImages is a convolution of the gradients of the result, with zeros between them if the
// strides are larger than 1.
func gradientOfImages(a, b, out []int, at convolutionAttributes, swapped bool) (convolution, bool) {
	c := convolution{
		operation: backwardData, batch: out[0], height: out[1], width: out[2], in: out[3], outHeight: a[1], outWidth: a[2], out: a[3],
		rows: b[0], columns: b[1], strides: at.aDilation, dilations: at.bDilation, swapped: swapped,
	}
	for axis, size := range c.kernelReach() {
		c.zeros[axis] = size - 1 - at.before[axis]
	}
	return c.withZerosBehind(at.strides == [2]int{1, 1})
}

// gradientOfWeights is a convolution of the images with the gradients of the result as the kernel.
func gradientOfWeights(a, b, out []int, at convolutionAttributes) (convolution, bool) {
	c := convolution{
		operation: backwardWeights, batch: a[0], height: a[1], width: a[2], in: a[3], outHeight: b[1], outWidth: b[2], out: b[3],
		rows: out[0], columns: out[1], strides: at.bDilation, dilations: at.strides, zeros: at.before,
	}
	return c.withZerosBehind(at.aDilation == [2]int{1, 1})
}

// kernelReach returns the height and width of the pixels that the kernel spans.
func (c convolution) kernelReach() [2]int {
	return [2]int{(c.rows-1)*c.dilations[0] + 1, (c.columns-1)*c.dilations[1] + 1}
}

// withZerosBehind computes the zeros behind the images with which the forward convolution has a
// result of this size. It reports whether there is such a convolution.
func (c convolution) withZerosBehind(ok bool) (convolution, bool) {
	size, results := [2]int{c.height, c.width}, [2]int{c.outHeight, c.outWidth}
	for axis, reach := range c.kernelReach() {
		c.zerosBehind[axis] = (results[axis]-1)*c.strides[axis] + reach - size[axis] - c.zeros[axis]
		ok = ok && c.zeros[axis] >= 0 && c.zerosBehind[axis]+c.strides[axis] > 0
	}
	return c, ok
}
