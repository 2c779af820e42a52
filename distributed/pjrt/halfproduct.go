package pjrt

import (
	"maps"
	"strings"

	"gonbatch/distributed/stablehlo"
)

// halfProducts makes a program for GPUs compute the matrix products of values in half precision by
// the units that GPUs have for them. In the backward pass, GoMLX converts the operands to single
// precision before it multiplies them, which takes a GPU many times as long. The result is the
// same: products of two numbers of half precision are exact in single precision, and both are added
// up in it. halfProducts returns how many operations it changes.
func halfProducts(m *stablehlo.Module) (changed int) {
	for _, f := range m.Functions {
		changed += halfProductsIn(&f.Block, nil)
	}
	return changed
}

// halfProductsIn is halfProducts for a block, and those in it. outer has what values of single
// precision outside of it are converted from.
func halfProductsIn(b *stablehlo.Block, outer map[string]stablehlo.Value) (changed int) {
	narrow := map[string]stablehlo.Value{}
	maps.Copy(narrow, outer)
	for _, o := range b.Ops {
		switch o.Name {
		case "stablehlo.convert":
			if isHalf(o.Types[0]) && elementOf(o.Out[0]) == "f32" {
				narrow[o.Results[0]] = o.Operand(0)
			}
		case "stablehlo.dot_general":
			if withoutAlgorithm(o) {
				changed++
			}
			left, right := narrow[o.Operands[0]], narrow[o.Operands[1]]
			if elementOf(o.Out[0]) == "f32" && left.Name != "" && elementOf(left.Type) == elementOf(right.Type) {
				o.Operands, o.Types = []string{left.Name, right.Name}, []string{left.Type, right.Type}
				o.Change()
				changed++
			}
		}
		for _, r := range o.Regions {
			changed += halfProductsIn(&r.Block, narrow)
		}
	}
	return changed
}

// withoutAlgorithm removes how go-xla asks XLA on CPUs to add up in single precision. On GPUs XLA
// does so without, and refuses it for half precision.
func withoutAlgorithm(o *stablehlo.Op) bool {
	const name = "algorithm = "
	at := strings.Index(o.Attributes, name+"#stablehlo.dot_algorithm<")
	if at < 0 {
		return false
	}
	value, _ := o.Attribute("algorithm")
	rest := o.Attributes[at:]
	rest = rest[strings.Index(rest, value)+len(value):]
	o.Attributes = o.Attributes[:at] + strings.TrimLeft(strings.TrimPrefix(rest, ","), " \n")
	o.Change()
	return true
}

func isHalf(tensor string) bool {
	dimensions, element, _ := stablehlo.Tensor(tensor)
	return len(dimensions) > 0 && (element == "bf16" || element == "f16")
}

// elementOf returns the element type of a tensor.
func elementOf(tensor string) string {
	_, element, _ := stablehlo.Tensor(tensor)
	return element
}

// forGPUs reports whether the programs that are compiled are for GPUs: in this process, or in one
// that it pretends to be.
func forGPUs() bool {
	mu.Lock()
	defer mu.Unlock()
	_, cuda := loaded["cuda"]
	return cuda || isPretended(theLowering)
}
