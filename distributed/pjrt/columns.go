package pjrt

import (
	"slices"
	"strings"

	"gonbatch/distributed/stablehlo"
)

// minColumns is the smallest matrix whose rows a kernel adds up faster than XLA, in elements.
var minColumns = 1 << 17

// sumColumns replaces the sums over the rows of large float32 matrices, such as the gradients of
// biases, which XLA adds up in several passes. It returns how many.
func sumColumns(f *flow) (replaced int) {
	f.Replace(func(o *stablehlo.Op) []*stablehlo.Op {
		if !isSum(o) || !f.isZero(o.Operands[1]) {
			return nil
		}
		x, out := o.Operand(0), resultOf(o)
		rows, columns := rowsAndColumns(dimensionsOf(x.Type), o.Ints("dimensions"))
		if rows < 2 || rows*columns < minColumns {
			return nil
		}
		replaced++
		// A product of the same matrix has the same reshape, so XLA computes the matrix once.
		matrix := stablehlo.Value{Name: own("rows", out.Name), Type: stablehlo.TensorOf("f32", rows, columns)}
		reshape := stablehlo.New("stablehlo.reshape", "", []stablehlo.Value{x}, matrix)
		return append([]*stablehlo.Op{reshape}, kernelCall(columnsTarget, []int{rows, columns}, matrix, matrix, out)...)
	})
	return replaced
}

// isSum reports whether an operation adds up the elements of one array.
func isSum(o *stablehlo.Op) bool {
	if o.Name != "stablehlo.reduce" || len(o.Operands) != 2 || len(o.Regions) != 1 {
		return false
	}
	r := o.Regions[0]
	if len(r.Parameters) != 2 || len(r.Ops) != 2 || r.Parameters[0].Type != "tensor<f32>" {
		return false
	}
	add, end := r.Ops[0], r.Ops[1]
	return add.Name == "stablehlo.add" && slices.Equal(add.Operands, []string{r.Parameters[0].Name, r.Parameters[1].Name}) && slices.Equal(end.Operands, add.Results)
}

// isZero reports whether a value is the constant 0.
func (f *flow) isZero(value string) bool {
	if f.kind(value) != "constant" {
		return false
	}
	written, _ := f.by[value].Attribute("value")
	zero, isFloat := strings.CutSuffix(written, " : tensor<f32>")
	zero = strings.TrimSuffix(strings.TrimPrefix(zero, "dense<"), ">")
	return isFloat && strings.Trim(zero, "0.") == "" && strings.HasPrefix(zero, "0")
}

// rowsAndColumns returns the numbers of rows and columns of the matrix whose rows are added up if
// the first dimensions of an array are. It returns no rows for other dimensions.
func rowsAndColumns(dimensions, summed []int) (rows, columns int) {
	if len(summed) >= len(dimensions) {
		return 0, 0
	}
	rows, columns = 1, 1
	for i, n := range dimensions {
		switch {
		case i >= len(summed):
			columns *= n
		case summed[i] != i:
			return 0, 0
		default:
			rows *= n
		}
	}
	return rows, columns
}
