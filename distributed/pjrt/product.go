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
	alone                    bool // As in a convolution.
}

// form returns the numbers that a kernel reads; onednn/product.c has the same order.
func (p product) form() []int {
	return []int{p.pairs, p.m, p.n, p.k, number(p.transposedA), number(p.transposedB), number(p.alone)}
}

// minProduct is the smallest number of multiplications for which a kernel is faster. XLA compiles
// small products together with what is around them.
var minProduct = 1 << 20

// transposition matches the transposition of a matrix on the next line.
var transposition = regexp.MustCompile(`^\n( *)(%\w+) = "stablehlo\.transpose"\((%\w+)\) \{ permutation = array<i64: 1, 0> \} : \((tensor<[^<>]*>)\) -> (tensor<[^<>]*>)`)

// withProducts replaces the products of matrices that a kernel computes faster. XLA can't see that
// the transposition of a custom call's result is also a product, so that of a product, which GoMLX
// writes on the next line, is replaced too. XLA removes what is then not used. On several
// devices, each computes a part.
func withProducts(module string, devices *perDevice) (string, int) {
	var out strings.Builder
	replaced := 0
	for {
		at := operationPatterns["dot_general"].find(module, 0)
		if at == nil {
			break
		}
		o := asOperation(submatches(module, at))
		out.WriteString(module[:at[0]])
		statement := module[at[0]:at[1]]
		module = module[at[1]:]
		if c, ok := devices.productCall(o); ok {
			replaced++
			statement = c.write()
			if m := transposition.FindStringSubmatch(module); m != nil && m[3] == o.name && c.canSwap() {
				statement += "\n" + c.transposed(m[1], m[2], m[5]).write()
				module = module[len(m[0]):]
			}
		}
		out.WriteString(statement)
	}
	return out.String() + module, replaced
}

// productCall is a product that a kernel computes, on one device or in parts on several.
type productCall struct {
	devices *perDevice // nil: one.
	cut     cut
	whole   operation
	product product // Of a device's part.
}

// productCall reports false for a product that XLA should compute.
func (p *perDevice) productCall(o operation) (c productCall, ok bool) {
	c = productCall{devices: p, whole: o}
	in := o
	if p != nil {
		if c.cut, ok = p.productCut(o); !ok {
			return c, false
		}
		if in, ok = p.local(o, c.cut); !ok {
			return c, false
		}
	}
	c.product, ok = parseProduct(in)
	c.product.alone = p != nil
	return c, ok
}

func (c productCall) write() string {
	if c.devices == nil {
		return c.whole.kernelCall(productTarget, c.product.form())
	}
	in, _ := c.devices.local(c.whole, c.cut)
	return c.devices.divide(c.whole, in, c.cut, in.kernelCall(productTarget, c.product.form()))
}

// canSwap reports whether the transposed result can be computed too. If the devices have its rows,
// they would have its columns.
func (c productCall) canSwap() bool { return c.devices == nil || c.cut.sums }

// transposed returns the call whose result is the transposed one.
func (c productCall) transposed(indent, name, out string) productCall {
	c.whole = operation{indent: indent, name: name, a: c.whole.b, b: c.whole.a, aType: c.whole.bType, bType: c.whole.aType, out: out}
	c.product = c.product.swapped()
	return c
}

// swapped returns the product whose result is the transposed one: that of b and a.
func (p product) swapped() product {
	return product{pairs: p.pairs, m: p.n, n: p.m, k: p.k, transposedA: !p.transposedB, transposedB: !p.transposedA, alone: p.alone}
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

// pairsOf returns how many pairs of matrices a and b have, and how many dimensions count them: the
// first ones of both. It returns no pairs for other forms.
func pairsOf(o operation, a, b []int) (dimensions, pairs int) {
	of, and := o.numbersAttribute("lhs_batching_dimensions"), o.numbersAttribute("rhs_batching_dimensions")
	n := len(of)
	if len(a) != n+2 || len(b) != n+2 || !slices.Equal(of, and) {
		return 0, 0
	}
	pairs = 1
	for i, dimension := range of {
		if dimension != i {
			return 0, 0
		}
		pairs *= a[i]
	}
	return n, pairs
}
