package pjrt

import (
	"strings"

	"gonbatch/distributed/stablehlo"
)

// orderProducts turns flow.order on. Tests turn it off.
var orderProducts = true

// order adds to the products that compute gradients of weights an operand that orders them after
// the products that use these weights.
//
// XLA updates a variable in place only if nothing can still read its old value. The gradient of a
// layer's inputs reads the weights, and the update needs only that of the weights: without an
// order, XLA copies all large weights in each step.
func (f *flow) order() {
	marked := map[string]string{} // The types of the variables that are updated in place.
	for _, v := range f.Parameters {
		if strings.Contains(v.Attributes, shareMark) {
			marked[v.Name] = v.Type
		}
	}
	users := map[string]stablehlo.Value{} // The last product that uses a variable of a type.
	readers := f.readers()
	for _, o := range f.Ops {
		if o.Target() != productTarget || readers[o.Results[0]] == 0 { // A product that isn't used must remain so.
			continue
		}
		if user, ok := users[o.Out[0]]; ok {
			o.Insert(len(o.Operands), user)
		}
		for _, operand := range o.Operands[:2] {
			if weights, ok := marked[operand]; ok {
				users[weights] = resultOf(o)
			}
		}
	}
}
