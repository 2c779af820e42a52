package aot

import (
	"slices"
	"strings"

	"gonbatch/distributed/stablehlo"
)

// FLOPs counts the operations of a StableHLO program's matrix products and convolutions, two for a
// multiplication and an addition, and reports whether any is in half precision. The rest of a
// training step is small compared with them.
func FLOPs(program string) (flops float64, half bool) {
	m, err := stablehlo.Parse(program)
	if err != nil {
		return 0, false // It is one of another backend's.
	}
	for _, f := range m.Functions {
		ofBlock, isHalf := flopsOf(&f.Block)
		flops, half = flops+ofBlock, half || isHalf
	}
	return flops, half
}

// flopsOf leaves out the operations whose values are not used: GoMLX builds the gradient of the
// batch too, and leaves it to XLA to notice that it is unused.
func flopsOf(b *stablehlo.Block) (flops float64, half bool) {
	used := map[string]bool{}
	for _, o := range slices.Backward(b.Ops) {
		if len(o.Results) > 0 && !slices.ContainsFunc(o.Results, func(name string) bool { return used[name] }) {
			continue
		}
		for _, name := range o.Uses() {
			used[name] = true
		}
		ofOp, isHalf := flopsOfOp(o)
		flops, half = flops+ofOp, half || isHalf
		for _, r := range o.Regions {
			ofBlock, isHalf := flopsOf(&r.Block)
			flops, half = flops+ofBlock, half || isHalf
		}
	}
	return flops, half
}

func flopsOfOp(o *stablehlo.Op) (flops float64, half bool) {
	switch o.Name {
	case "stablehlo.dot_general":
		flops = 2 * size(o.Out[0]) * product(at(o.Types[0], o.Ints("lhs_contracting_dimensions")))
	case "stablehlo.convolution":
		flops = 2 * size(o.Out[0]) * size(o.Types[1]) / product(at(o.Types[1], outputs(o))) / product(o.Ints("lhs_dilation"))
	default:
		return 0, false
	}
	_, element, _ := stablehlo.Tensor(o.Types[0])
	return flops, strings.HasSuffix(element, "f16")
}

// outputs is the axis of a kernel's output features: each result takes the rest of the kernel.
func outputs(o *stablehlo.Op) []int {
	numbers, _ := o.Attribute("dimension_numbers")
	_, kernel, _ := strings.Cut(numbers, "]x[")
	kernel, _, _ = strings.Cut(kernel, "]->")
	return []int{slices.Index(strings.Split(kernel, ", "), "o")}
}

// at are the dimensions of these axes of a tensor.
func at(tensor string, axes []int) (all []int) {
	dimensions, _, _ := stablehlo.Tensor(tensor)
	for _, axis := range axes {
		if axis >= 0 && axis < len(dimensions) {
			all = append(all, dimensions[axis])
		}
	}
	return all
}

func size(tensor string) float64 { return float64(stablehlo.Size(tensor)) }

func product(all []int) float64 {
	n := 1.0
	for _, d := range all {
		n *= float64(d)
	}
	return n
}
