package pjrt

import (
	"slices"
)

// minTrained is the smallest gradient that stays in the cache, in elements: a smaller one may stay
// there by itself. mostTrained is the largest contracted dimension of the product: with more, a
// product computes for longer than its result takes to memory and back. minTrainedSide is the
// smallest side of the gradient: narrow tiles are slow.
var minTrained, mostTrained, minTrainedSide = 1 << 20, 128, 256

// stateOperands are the weight and its two moments.
const stateOperands = 3

// train makes one custom call of a product and the update of Adam whose gradient it is, if nothing
// else reads the gradient. Otherwise it would be written to memory and read again.
func (k *kernelCalls) train(f *flow) {
	readers := f.readers()
	f.index()
	for _, o := range f.Ops {
		if o.Target() != adamTarget {
			continue
		}
		gradient, alone := f.reshaped(o.Operands[stateOperands], readers)
		product := f.by[gradient]
		if p, ok := k.products[product]; !ok || !alone || !isTrained(p) {
			continue
		}
		// It has the product's operands instead of the gradient. What only orders the product is
		// the last.
		const factors = 3 // And the form.
		o.Operands = slices.Concat(o.Operands[:stateOperands], product.Operands[:factors], o.Operands[stateOperands+1:], product.Operands[factors:])
		o.Types = slices.Concat(o.Types[:stateOperands], product.Types[:factors], o.Types[stateOperands+1:], product.Types[factors:])
		o.Retarget(trainedTarget)
	}
}

// isTrained reports whether a product should not be in memory.
func isTrained(p product) bool {
	return p.pairs == 1 && !p.alone && p.m*p.n >= minTrained && min(p.m, p.n) >= minTrainedSide && p.k <= mostTrained
}
