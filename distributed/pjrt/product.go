package pjrt

import (
	"regexp"
	"slices"
	"strings"
)

// product is the product of an m x k and a k x n matrix, or of several pairs of them.
type product struct {
	pairs, m, n, k           int
	transposedA, transposedB bool // In memory: k x m, n x k.
}

// form returns the numbers that a kernel reads; onednn/product.c has the same order.
func (p product) form() []int {
	form := []int{p.pairs, p.m, p.n, p.k, 0, 0}
	if p.transposedA {
		form[4] = 1
	}
	if p.transposedB {
		form[5] = 1
	}
	return form
}

// minProduct is the smallest number of multiplications for which a kernel is faster. XLA compiles
// small products together with what is around them.
var minProduct = 1 << 20

// transposition matches the transposition of a matrix on the next line.
var transposition = regexp.MustCompile(`^\n( *)(%\w+) = "stablehlo\.transpose"\((%\w+)\) \{ permutation = array<i64: 1, 0> \} : \((tensor<[^<>]*>)\) -> (tensor<[^<>]*>)`)

// withProducts replaces the products of matrices that a kernel computes faster. XLA can't see that
// the transposition of a custom call's result is also a product, so that of a product, which GoMLX
// writes on the next line, is replaced too. XLA removes what is then not used.
func withProducts(module string) (string, int) {
	var out strings.Builder
	replaced := 0
	for {
		at := operationPatterns["dot_general"].FindStringSubmatchIndex(module)
		if at == nil {
			break
		}
		o := asOperation(submatches(module, at))
		out.WriteString(module[:at[0]])
		statement := module[at[0]:at[1]]
		module = module[at[1]:]
		if p, ok := parseProduct(o); ok {
			replaced++
			statement = o.kernelCall(productTarget, p.form())
			if m := transposition.FindStringSubmatch(module); m != nil && m[3] == o.name {
				statement += "\n" + o.transposed(m[1], m[2], m[5]).kernelCall(productTarget, p.swapped().form())
				module = module[len(m[0]):]
			}
		}
		out.WriteString(statement)
	}
	return out.String() + module, replaced
}

// transposed returns the operation whose result is the transposed one.
func (o operation) transposed(indent, name, out string) operation {
	return operation{indent: indent, name: name, a: o.b, b: o.a, aType: o.bType, bType: o.aType, out: out}
}

// submatches returns the substrings at the indices.
func submatches(text string, indices []int) []string {
	all := make([]string, len(indices)/2)
	for i := range all {
		if indices[2*i] >= 0 {
			all[i] = text[indices[2*i]:indices[2*i+1]]
		}
	}
	return all
}

// swapped returns the product whose result is the transposed one: that of b and a.
func (p product) swapped() product {
	return product{pairs: p.pairs, m: p.n, n: p.m, k: p.k, transposedA: !p.transposedB, transposedB: !p.transposedA}
}

// parseProduct reports false for a product that XLA should compute.
func parseProduct(o operation) (p product, ok bool) {
	a, b, out := dimensionsOf(o.aType), dimensionsOf(o.bType), dimensionsOf(o.out)
	batch, pairs := pairsOf(o, a, b)
	contracted, with := o.numbersAttribute("lhs_contracting_dimensions"), o.numbersAttribute("rhs_contracting_dimensions")
	if pairs == 0 || len(contracted) != 1 || len(with) != 1 || len(out) != batch+2 {
		return p, false
	}
	k, l := contracted[0]-batch, with[0]-batch
	if k < 0 || l < 0 {
		return p, false
	}
	p = product{pairs: pairs, m: a[batch+1-k], n: b[batch+1-l], k: a[batch+k], transposedA: k == 0, transposedB: l == 1}
	return p, p.m*p.n*p.k >= minProduct
}

// pairsOf returns how many pairs of matrices a and b have, and the number of the dimensions that
// count them: 0, or 1 if it is the first of both. It returns no pairs for other forms.
func pairsOf(o operation, a, b []int) (dimensions, pairs int) {
	of, and := o.numbersAttribute("lhs_batching_dimensions"), o.numbersAttribute("rhs_batching_dimensions")
	switch {
	case len(a) == 2 && len(b) == 2 && len(of) == 0 && len(and) == 0:
		return 0, 1
	case len(a) == 3 && len(b) == 3 && slices.Equal(of, []int{0}) && slices.Equal(and, []int{0}):
		return 1, a[0]
	}
	return 0, 0
}
