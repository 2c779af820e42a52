package pjrt

import (
	"regexp"
	"strings"
)

// The statements that halfProducts changes, in the form that go-xla writes.
var (
	// widening converts a value of half precision: its name, what it converts, and its type.
	//
	//	%7 = "stablehlo.convert"(%6) : (tensor<2x4xbf16>) -> tensor<2x4xf32>
	widening = startPattern(`"stablehlo.convert"(`, ` *(%\w+) = "stablehlo\.convert"\((%\w+)\) : \((tensor<(?:\d+x)+(bf16|f16)>)\) -> tensor<(?:\d+x)+f32>`)
	// wideProduct is a matrix product in single precision: its operands, its attributes and its
	// result's type.
	wideProduct = regexp.MustCompile(`"stablehlo\.dot_general"\((%\w+), (%\w+)\) (\{[^}]*\}) : \(tensor<(?:\d+x)+f32>, tensor<(?:\d+x)+f32>\) -> (tensor<(?:\d+x)*f32>)`)
	// algorithm is how go-xla asks XLA on CPUs to add up in single precision. On GPUs XLA does so
	// without, and refuses it for half precision.
	algorithm = startPattern("algorithm = #stablehlo.dot_algorithm<", ` *algorithm = #stablehlo\.dot_algorithm<[^>]*>,\n?`)
)

// halfProducts makes a program for GPUs (text form) compute the matrix products of values in half
// precision by the units that GPUs have for them. In the backward pass, GoMLX converts the operands
// to single precision before it multiplies them, which takes a GPU many times as long. The result
// is the same: products of two numbers of half precision are exact in single precision, and both
// are added up in it. halfProducts returns how many statements it changes.
func halfProducts(module string) (string, int) {
	module, changed := algorithm.replace(module, func([]string) (string, bool) { return "", true })
	functions := strings.SplitAfter(module, "func.func") // A name belongs to a function.
	for i, f := range functions {
		type half struct{ name, of, dtype string }
		narrow := map[string]half{}
		for _, m := range widening.all(f) {
			narrow[m[1]] = half{m[2], m[3], m[4]}
		}
		if len(narrow) == 0 {
			continue
		}
		functions[i] = wideProduct.ReplaceAllStringFunc(f, func(product string) string {
			m := wideProduct.FindStringSubmatch(product)
			a, b := narrow[m[1]], narrow[m[2]]
			if a.name == "" || a.dtype != b.dtype {
				return product
			}
			changed++
			return `"stablehlo.dot_general"(` + a.name + ", " + b.name + ") " + m[3] + " : (" + a.of + ", " + b.of + ") -> " + m[4]
		})
	}
	return strings.Join(functions, ""), changed
}

// forGPUs reports whether the programs that are compiled are for GPUs: in this process, or in one
// that it pretends to be.
func forGPUs() bool {
	mu.Lock()
	defer mu.Unlock()
	_, cuda := loaded["cuda"]
	return cuda || isPretended(theLowering)
}
