package pjrt_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
)

// productTypes matches the types of a matrix product.
var productTypes = regexp.MustCompile(`stablehlo\.dot_general"[^}]*\} : \(([^)]*)\) -> (\S+)`)

// TestHalfProducts: with the change, all products of the forward and the backward pass are of
// half precision, of batches of matrices too. Products of single precision stay. XLA:CPU has no
// such products: TestMixedForecast compiles them for H100.
func TestHalfProducts(t *testing.T) {
	backend := openCPU(t)
	for dtype, name := range map[dtypes.DType]string{dtypes.BFloat16: "xbf16>", dtypes.Float16: "xf16>", dtypes.Float32: "xf32>"} {
		var program string
		reset := pjrt.SetShare(func(text string) (string, int) { program = text; return text, 0 })
		exec := graph.MustNewExec(backend, func(x, w, v *graph.Node) []*graph.Node {
			narrow := func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtype) }
			y := graph.Tanh(graph.Einsum("bnk,km->bnm", narrow(x), narrow(w)))
			z := graph.ConvertDType(graph.Einsum("bnm,bmo->bno", y, narrow(v)), dtypes.Float32)
			return graph.Gradient(graph.ReduceAllSum(graph.Square(z)), x, w, v)
		})
		_, err := exec.Call(zeros(5, 7, 33), zeros(33, 9), zeros(5, 9, 4))
		reset()
		if err != nil {
			t.Fatal(err)
		}
		before := len(productTypes.FindAllString(program, -1))
		got, changed := pjrt.HalfProducts(program)
		types := productTypes.FindAllStringSubmatch(got, -1)
		if half := dtype.IsHalfPrecision(); (changed > 0) != half || !half && got != program || len(types) != 6 || before != 6 || strings.Contains(got, "algorithm") {
			t.Errorf("%s: %d changes, %d products, before %d:\n%s", dtype, changed, len(types), before, got)
		}
		for _, m := range types {
			if strings.Count(m[1], name) != 2 {
				t.Errorf("%s: a product of %s", dtype, m[1])
			}
		}
		if again, changed := pjrt.HalfProducts(got); changed != 0 || again != got {
			t.Errorf("%s: %d changes of a program that was changed", dtype, changed)
		}
	}
}

func zeros(dims ...int) *tensors.Tensor {
	return tensors.FromShape(shapes.Make(dtypes.Float32, dims...))
}

// TestHalfProductsLeavesOthers: products with one operand of single precision, or of two kinds of
// half precision, or whose operand has its name in another function only.
func TestHalfProductsLeavesOthers(t *testing.T) {
	const attributes = "{\n      dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1]>\n    }"
	widen := func(name, of, dtype string) string {
		return "    " + name + ` = "stablehlo.convert"(` + of + ") : (tensor<2x2x" + dtype + ">) -> tensor<2x2xf32>\n"
	}
	function := func(name, body string) string { return "  func.func @" + name + "() -> () {\n" + body + "  }\n" }
	product := `    %9 = "stablehlo.dot_general"(%1, %2) ` + attributes + " : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\n"
	for name, program := range map[string]string{
		"one operand":      function("main", widen("%1", "%0", "bf16")+product),
		"two kinds":        function("main", widen("%1", "%0", "bf16")+widen("%2", "%0", "f16")+product),
		"another function": function("f", widen("%1", "%0", "f16")+widen("%2", "%0", "f16")) + function("main", product),
	} {
		if got, changed := pjrt.HalfProducts(program); changed != 0 || got != program {
			t.Errorf("%s: becomes\n%s", name, got)
		}
	}
}
