package pjrt

import (
	"slices"

	"gonbatch/distributed/stablehlo"
)

// partTargets are the custom calls that update a part of a variable, by those that update a whole
// one.
var partTargets = map[string]string{adamTarget: adamPartTarget, trainedTarget: trainedPartTarget}

// updateParts makes the custom call that updates a part of a variable, if that is copied out of the
// variable before and back after it, update the variable itself.
func (f *flow) updateParts() {
	f.index()
	readers := f.readers()
	puts := f.puts(readers)
	users := map[string]stablehlo.Value{} // The last product that reads a value.
	for _, o := range f.Ops {
		if o.Target() == productTarget && readers[o.Results[0]] > 0 {
			for _, operand := range o.Operands[:2] {
				users[operand] = resultOf(o)
			}
		}
		target := partTargets[o.Target()]
		if target == "" {
			continue
		}
		p, ok := puts[o.Results[0]]
		if !ok || f.kind(o.Operands[0]) != "dynamic_slice" || !slices.Equal(f.by[o.Operands[0]].Operands, []string{p.whole.Name, p.begin.Name}) {
			continue
		}
		old := f.by[o.Operands[0]]
		whole, _ := f.reshaped(p.whole.Name, readers)
		o.Operands[0], o.Types[0], o.Out[0] = p.whole.Name, p.whole.Type, p.whole.Type
		o.Insert(stateOperands, p.begin)
		if user, ok := users[whole]; ok { // It runs after that: see order.
			o.Insert(len(o.Operands), user)
		}
		o.Retarget(target)
		updated := resultsOf(o)[0]
		*p.part = *stablehlo.New("stablehlo.dynamic_slice", old.Attributes, []stablehlo.Value{updated, p.begin}, stablehlo.Value{Name: p.part.Results[0], Type: old.Out[0]})
		*p.put = *stablehlo.New("stablehlo.reshape", "", []stablehlo.Value{updated}, resultOf(p.put))
	}
}

// put is a dynamic_update_slice that puts a part that was updated into the whole.
type put struct {
	put, part    *stablehlo.Op // The part is the reshape that follows an update.
	whole, begin stablehlo.Value
}

// puts returns the operations that put parts back that nothing else reads, by the first results of
// the custom calls that have updated the parts.
func (f *flow) puts(readers map[string]int) map[string]put {
	all := map[string]put{}
	for _, o := range f.Ops {
		if o.Name != "stablehlo.dynamic_update_slice" || len(o.Operands) != 3 || o.Types[2] != "tensor<i64>" || readers[o.Results[0]] == 0 {
			continue
		}
		if f.kind(o.Operands[1]) == "reshape" && readers[o.Operands[1]] == 1 {
			part := f.by[o.Operands[1]]
			all[part.Operands[0]] = put{put: o, part: part, whole: o.Operand(0), begin: o.Operand(2)}
		}
	}
	return all
}

// resultsOf returns the results of an operation.
func resultsOf(o *stablehlo.Op) (all []stablehlo.Value) {
	for i, name := range o.Results {
		all = append(all, stablehlo.Value{Name: name, Type: o.Out[i]})
	}
	return all
}
