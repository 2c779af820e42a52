package pjrt

import (
	"fmt"
	"strings"
)

// minColumns is the smallest matrix whose rows a kernel adds up faster than XLA, in elements.
var minColumns = 1 << 17

// rowSum matches a sum over the first dimensions of an array:
//
//	%9 = "stablehlo.reduce"(%8, %7) ({
//	  ^reductionFn(%lhs: tensor<f32>, %rhs: tensor<f32>) :
//	      %6 = "stablehlo.add"(%lhs, %rhs) : (tensor<f32>, tensor<f32>) -> tensor<f32>
//	      "stablehlo.return"(%6) : (tensor<f32>) -> ()
//	}) { dimensions = array<i64: 0, 1> } : (tensor<4x256x384xf32>, tensor<f32>) -> tensor<384xf32>
var rowSum = startPattern(`"stablehlo.reduce"(`, `( *)(%\w+) = "stablehlo\.reduce"\((%\w+), (%\w+)\) \(\{\n`+
	` *\^\w+\((%\w+): tensor<f32>, (%\w+): tensor<f32>\) *:\n`+
	` *(%\w+) = "stablehlo\.add"\((%\w+), (%\w+)\) : \(tensor<f32>, tensor<f32>\) -> tensor<f32>\n`+
	` *"stablehlo\.return"\((%\w+)\) : \(tensor<f32>\) -> \(\)\n`+
	` *\}\) \{ dimensions = array<i64: ([\d, ]+)> \} : \((tensor<[^<>]*>), tensor<f32>\) -> (tensor<[^<>]*>)`)

// zero matches a constant that is 0.
var zero = startPattern(`"stablehlo.constant"() { value = dense<0`, ` *(%\w+) = "stablehlo\.constant"\(\) \{ value = dense<0(?:\.0*)?> : tensor<f32> \}`)

// withColumns replaces the sums over the rows of large float32 matrices, such as the gradients of
// biases, which XLA adds up in several passes. It returns how many.
func withColumns(module string) (out string, replaced int) {
	out = inMain(module, func(statements string) string {
		statements, replaced = sumsOfColumns(statements)
		return statements
	})
	return out, replaced
}

func sumsOfColumns(statements string) (out string, replaced int) {
	zeros := map[string]bool{}
	for _, m := range zero.all(statements) {
		zeros[m[1]] = true
	}
	return rowSum.replace(statements, func(m []string) (string, bool) {
		indent, name, x, first, xType, out := m[1], m[2], m[3], m[4], m[12], m[13]
		rows, columns := rowsAndColumns(dimensionsOf(xType), numbersIn(m[11]))
		added := [2]string{m[8], m[9]} == [2]string{m[5], m[6]} && m[10] == m[7]
		if !added || !zeros[first] || rows < 2 || rows*columns < minColumns {
			return "", false
		}
		// A product of the same matrix has the same reshape, so XLA computes the matrix once.
		matrix, matrixType := "%gonbatch_rows_"+strings.TrimPrefix(name, "%"), fmt.Sprintf("tensor<%dx%dxf32>", rows, columns)
		reshape := fmt.Sprintf("%s%s = \"stablehlo.reshape\"(%s) : (%s) -> %s\n", indent, matrix, x, xType, matrixType)
		o := operation{indent: indent, name: name, a: matrix, b: matrix, aType: matrixType, bType: matrixType, out: out}
		return reshape + o.kernelCall(columnsTarget, []int{rows, columns}), true
	})
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
