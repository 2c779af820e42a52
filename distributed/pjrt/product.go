package pjrt

import (
	"slices"

	"gonbatch/distributed/stablehlo"
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

// product returns the call of a kernel for a product of matrices, if a kernel computes it faster:
// on one device, or in parts on several.
func (k *kernelCalls) product(o *stablehlo.Op) []*stablehlo.Op {
	c, ok := k.devices.productCall(o)
	if !ok {
		return nil
	}
	return k.write(c)
}

// transposition returns the call for the product whose result is the transposed one, if the next
// operation transposes that of a product. XLA can't see that the transposition of a custom call's
// result is also a product; it removes what is then not used.
func (k *kernelCalls) transposition(o, next *stablehlo.Op) []*stablehlo.Op {
	if next.Name != "stablehlo.transpose" || next.Operands[0] != o.Result() || !slices.Equal(next.Ints("permutation"), []int{1, 0}) {
		return nil
	}
	c, ok := k.devices.productCall(o)
	if !ok || !c.canSwap() {
		return nil
	}
	c.whole = stablehlo.New(o.Name, "", []stablehlo.Value{o.Operand(1), o.Operand(0)}, resultOf(next))
	c.product = c.product.swapped()
	return k.write(c)
}

// productCall is a product that a kernel computes.
type productCall struct {
	cut     cut
	whole   *stablehlo.Op
	product product // Of a device's part.
}

// canSwap reports whether the transposed result can be computed too. If the devices have its rows,
// they would have its columns.
func (c productCall) canSwap() bool { return !c.product.alone || c.cut.sums }

// productCall reports false for a product that XLA should compute.
func (p *perDevice) productCall(o *stablehlo.Op) (c productCall, ok bool) {
	c = productCall{whole: o}
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

func (k *kernelCalls) write(c productCall) []*stablehlo.Op {
	o := c.whole
	if k.devices == nil {
		ops := kernelCall(productTarget, c.product.form(), o.Operand(0), o.Operand(1), resultOf(o))
		k.products[ops[len(ops)-1]] = c.product
		return ops
	}
	in, _ := k.devices.local(o, c.cut)
	return k.devices.divide(o, in, c.cut, kernelCall(productTarget, c.product.form(), in.Operand(0), in.Operand(1), resultOf(in)))
}

// swapped returns the product whose result is the transposed one: that of b and a.
func (p product) swapped() product {
	return product{pairs: p.pairs, m: p.n, n: p.m, k: p.k, transposedA: !p.transposedB, transposedB: !p.transposedA, alone: p.alone}
}

// parseProduct reports false for a product that XLA should compute.
func parseProduct(o *stablehlo.Op) (p product, ok bool) {
	a, b, out := dimensionsOf(o.Types[0]), dimensionsOf(o.Types[1]), dimensionsOf(o.Out[0])
	batch, pairs := pairsOf(o, a, b)
	contracted, with := o.Ints("lhs_contracting_dimensions"), o.Ints("rhs_contracting_dimensions")
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
func pairsOf(o *stablehlo.Op, a, b []int) (dimensions, pairs int) {
	of, and := o.Ints("lhs_batching_dimensions"), o.Ints("rhs_batching_dimensions")
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
