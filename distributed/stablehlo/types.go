package stablehlo

import (
	"strconv"
	"strings"
)

// Tensor returns the dimensions and the element type of a tensor's type, such as 8, 8 and f32 of
// tensor<8x8xf32>. It reports false for another type, or for one without fixed dimensions.
func Tensor(typed string) (dimensions []int, element string, ok bool) {
	inner, isTensor := strings.CutPrefix(typed, "tensor<")
	inner, closed := strings.CutSuffix(inner, ">")
	if !isTensor || !closed {
		return nil, "", false
	}
	for {
		size, rest, more := strings.Cut(inner, "x")
		if !more || size == "" || 'a' <= size[0] && size[0] <= 'z' { // As in complex<f32>.
			return dimensions, inner, true
		}
		n, err := strconv.Atoi(size)
		if err != nil {
			return nil, "", false
		}
		dimensions, inner = append(dimensions, n), rest
	}
}

// TensorOf writes a tensor's type.
func TensorOf(element string, dimensions ...int) string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, n := range dimensions {
		b.WriteString(strconv.Itoa(n) + "x")
	}
	return b.String() + element + ">"
}

// Size returns the number of elements of a tensor's type; 0 of another one.
func Size(typed string) int {
	dimensions, _, ok := Tensor(typed)
	if !ok {
		return 0
	}
	size := 1
	for _, n := range dimensions {
		size *= n
	}
	return size
}

// Numbers returns the whole numbers in a text.
func Numbers(text string) (all []int) {
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r != '-' && (r < '0' || r > '9') }) {
		if n, err := strconv.Atoi(field); err == nil {
			all = append(all, n)
		}
	}
	return all
}
