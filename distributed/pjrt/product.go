package pjrt

import (
	"regexp"
	"slices"
	"strings"
)

// product is the product of an m x k and a k x n matrix.
type product struct {
	m, n, k                  int
	transposedA, transposedB bool // In memory: k x m, n x k.
}

// form returns the numbers that a kernel reads; onednn/product.c has the same order.
func (p product) form() []int {
	form := []int{p.m, p.n, p.k, 0, 0}
	if p.transposedA {
		form[3] = 1
	}
	if p.transposedB {
		form[4] = 1
	}
	return form
}

// minProduct is the smallest number of multiplications for which a kernel is faster. XLA compiles
// small products together with what is around them.
const minProduct = 1 << 20

// transposition matches the transposition of a matrix.
var transposition = regexp.MustCompile(`(?m)^( *)(%\w+) = "stablehlo\.transpose"\((%\w+)\) \{ permutation = array<i64: 1, 0> \} : \((tensor<[^<>]*>)\) -> (tensor<[^<>]*>)`)

// withProducts replaces the products of matrices that a kernel computes faster. XLA can't see that
// the transposition of a custom call's result is also a product, so that of a product is replaced
// too. XLA removes what is then not used.
func withProducts(module string) (string, int) {
	products := map[string]operation{}
	module, replaced := replaceOperations(module, "dot_general", func(o operation) (string, bool) {
		p, ok := parseProduct(o)
		if !ok {
			return "", false
		}
		products[o.name] = o
		return o.kernelCall(productTarget, p.form()), true
	})
	if replaced == 0 {
		return module, 0
	}
	return transposition.ReplaceAllStringFunc(module, func(statement string) string {
		m := transposition.FindStringSubmatch(statement)
		o, ok := products[m[3]]
		if !ok || o.out != m[4] {
			return statement
		}
		p, _ := parseProduct(o)
		o.indent, o.name, o.out = m[1], m[2], m[5]
		o.a, o.b, o.aType, o.bType = o.b, o.a, o.bType, o.aType
		return o.kernelCall(productTarget, p.swapped().form())
	}), replaced
}

// swapped returns the product whose result is the transposed one: that of b and a.
func (p product) swapped() product {
	return product{m: p.n, n: p.m, k: p.k, transposedA: !p.transposedB, transposedB: !p.transposedA}
}

// parseProduct reports false for a product that XLA should compute.
func parseProduct(o operation) (p product, ok bool) {
	a, b := dimensionsOf(o.aType), dimensionsOf(o.bType)
	contracted, with := o.numbersAttribute("lhs_contracting_dimensions"), o.numbersAttribute("rhs_contracting_dimensions")
	if len(a) != 2 || len(b) != 2 || len(contracted) != 1 || len(with) != 1 || dimensionsOf(o.out) == nil ||
		slices.ContainsFunc(strings.Split(o.attributes, "\n"), isBatched) {
		return p, false
	}
	p = product{m: a[1-contracted[0]], n: b[1-with[0]], k: a[contracted[0]], transposedA: contracted[0] == 0, transposedB: with[0] == 1}
	return p, p.m*p.n*p.k >= minProduct
}

func isBatched(line string) bool {
	return strings.Contains(line, "batching_dimensions") && len(numbersIn(line)) > 0
}
