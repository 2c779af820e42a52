package aot

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// product matches a matrix product or convolution, as go-xla writes it, with its attributes and the
// types of its operands and its result.
var product = regexp.MustCompile(`(?s)"stablehlo\.(dot_general|convolution)"\([^)]*\) \{(.*?)\} : \(tensor<([^>]*)>, tensor<([^>]*)>\) -> tensor<([^>]*)>`)

var (
	contracting = regexp.MustCompile(`lhs_contracting_dimensions = \[([^\]]*)\]`)
	kernelAxes  = regexp.MustCompile(`\]x\[([^\]]*)\]->`)
	dilation    = regexp.MustCompile(`lhs_dilation = array<i64: ([^>]*)>`)
)

// FLOPs counts the operations of a StableHLO program's matrix products and convolutions, two for a
// multiplication and an addition, and reports whether any is in half precision. The rest of a
// training step is small compared with them.
func FLOPs(program string) (flops float64, half bool) {
	for _, m := range product.FindAllStringSubmatch(live(program), -1) {
		attributes, left, right, out := m[2], dimensions(m[3]), dimensions(m[4]), dimensions(m[5])
		half = half || strings.HasSuffix(m[3], "f16")
		if m[1] == "dot_general" {
			flops += 2 * size(out) * size(at(left, numbers(contracting, attributes)))
			continue
		}
		flops += 2 * size(out) * size(right) / size(outputs(right, attributes)) / size(numbers(dilation, attributes))
	}
	return flops, half
}

// outputs is the number of a kernel's output features: each result takes the rest of the kernel.
func outputs(kernel []int, attributes string) []int {
	m := kernelAxes.FindStringSubmatch(attributes)
	if m == nil {
		return nil
	}
	return at(kernel, []int{slices.Index(strings.Split(m[1], ", "), "o")})
}

// dimensions are those of a tensor's type, such as 64x28x28x1xf32.
func dimensions(tensor string) (all []int) {
	for part := range strings.SplitSeq(tensor, "x") {
		if n, err := strconv.Atoi(part); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// numbers are those in an attribute; none if it is not there.
func numbers(attribute *regexp.Regexp, attributes string) (all []int) {
	m := attribute.FindStringSubmatch(attributes)
	if m == nil {
		return nil
	}
	for part := range strings.SplitSeq(m[1], ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// at are the dimensions of these axes.
func at(dimensions, axes []int) (all []int) {
	for _, axis := range axes {
		if axis >= 0 && axis < len(dimensions) {
			all = append(all, dimensions[axis])
		}
	}
	return all
}

// size is the product of dimensions.
func size(dimensions []int) float64 {
	n := 1.0
	for _, d := range dimensions {
		n *= float64(d)
	}
	return n
}
