package pjrt

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/distributed/stablehlo"
)

// share is shareMemory. Tests observe it or turn it off.
var share = shareMemory

// shareMemory lets the new values of variables reuse the memory of the old ones, so that XLA
// updates them in place. It marks the parameters of a program with the results that replace them,
// and returns how many it marked.
//
// GoMLX gives a program the memory of the variables that it changes, but doesn't say which these
// are, nor which result is the new value of which variable. shareMemory finds both in the program:
// the new value is the result of the same type that is computed from the variable element by
// element, by the fewest operations.
//
// A wrong pair can cost time but never gives a wrong value, because XLA copies what is still
// needed. But no pair may contain a variable that the program leaves unchanged, because XLA's CPU
// plugin of 2025 then also copies all variables after it.
func shareMemory(m *stablehlo.Module) int {
	f, ok := flowOf(m)
	if !ok || f.isMarked() {
		return 0
	}
	pairs := f.nearest()
	pairs = append(pairs, f.replaced(pairs)...)
	for _, c := range pairs {
		f.Parameters[c.parameter].Add(fmt.Sprintf("%s = %d : i32", shareMark, c.result))
	}
	return len(pairs)
}

// pair is a parameter and the result that may reuse its memory, by index.
type pair struct {
	parameter, result int
	distance          int // The number of operations between them.
}

// nearest pairs each result with the variable that it is computed from element by element, closest
// pairs first.
func (f *flow) nearest() []pair {
	var all []pair
	for i, result := range f.Results {
		if shareable(result) {
			all = append(all, f.candidates(i)...)
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return a.distance - b.distance })
	var chosen []pair
	for _, c := range all {
		if !slices.ContainsFunc(chosen, func(o pair) bool { return o.parameter == c.parameter || o.result == c.result }) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// reach is the maximum number of values to visit between a result and its variable.
const reach = 1000

// candidates returns the variables that the result with that index is computed from, with their
// distances. A variable that is itself a result hasn't been changed.
func (f *flow) candidates(result int) []pair {
	if i, ok := f.gathered(result); ok && f.fit(i, result) {
		return []pair{{i, result, 1}}
	}
	var found []pair
	distance := map[string]int{f.returned[result]: 0}
	for queue := []string{f.returned[result]}; len(queue) > 0 && len(distance) < reach; queue = queue[1:] {
		at := distance[queue[0]]
		if i, ok := f.parameters[queue[0]]; ok {
			if at > 0 && f.fit(i, result) {
				found = append(found, pair{i, result, at})
			}
			continue
		}
		if !elementwise[f.kind(queue[0])] {
			continue
		}
		for _, operand := range f.by[queue[0]].Operands {
			if _, seen := distance[operand]; !seen {
				distance[operand] = at + 1
				queue = append(queue, operand)
			}
		}
	}
	return found
}

// gathered returns the variable of which this rank changes its part, while the other parts are
// gathered in place.
func (f *flow) gathered(result int) (parameter int, ok bool) {
	gathers := false
	for name := f.returned[result]; ; {
		if i, isParameter := f.parameters[name]; isParameter {
			return i, gathers
		}
		kind := f.kind(name)
		here := kind == "func.call" && isGatherInPlace(f.by[name])
		if !here && kind != "reshape" && kind != "dynamic_update_slice" {
			return 0, false
		}
		gathers = gathers || here
		name = f.by[name].Operands[0]
	}
}

// isGatherInPlace reports whether a call is of an all-gather in place.
func isGatherInPlace(o *stablehlo.Op) bool {
	p, ok := placeholderOf(o.Callee())
	return ok && p.op == allGather && p.part == inPlace
}

// replaced pairs the remaining variables: those whose new value does not depend on the old one,
// such as sums that are reset. GoMLX's first results are the new values of variables, so every
// result before a paired one is also a new value. If as many variables of its type remain as
// results, all of them are changed.
func (f *flow) replaced(pairs []pair) []pair {
	var parameters, results = map[string][]int{}, map[string][]int{}
	last := -1
	for _, c := range pairs {
		last = max(last, c.result)
	}
	for i, result := range f.Results[:last+1] {
		if shareable(result) && !slices.ContainsFunc(pairs, func(c pair) bool { return c.result == i }) {
			results[typed(result)] = append(results[typed(result)], i)
		}
	}
	for i, v := range f.Parameters {
		if isVariable(v) && !slices.ContainsFunc(pairs, func(c pair) bool { return c.parameter == i }) {
			parameters[typed(v)] = append(parameters[typed(v)], i)
		}
	}
	var more []pair
	for kind, left := range results {
		if len(left) != len(parameters[kind]) {
			continue
		}
		for i, result := range left {
			more = append(more, pair{parameter: parameters[kind][i], result: result})
		}
	}
	return more
}

// fit reports whether a result may reuse the memory of a parameter.
func (f *flow) fit(parameter, result int) bool {
	v := f.Parameters[parameter]
	return isVariable(v) && typed(v) == typed(f.Results[result])
}

// isVariable reports whether a parameter is a variable whose memory is worth sharing. GoMLX's names
// of variables begin with an underscore.
func isVariable(v stablehlo.Value) bool { return strings.HasPrefix(v.Name, "%_") && shareable(v) }

// shareable is false for scalars, which cost nothing and are often unchanged (learning rates), and
// for empty arrays.
func shareable(v stablehlo.Value) bool {
	dimensions, _, ok := stablehlo.Tensor(v.Type)
	return ok && len(dimensions) > 0 && !slices.Contains(dimensions, 0)
}

// typed is what two values must have in common to share the same memory on the same devices.
func typed(v stablehlo.Value) string { return v.Type + v.Attributes }

// elementwise are operations whose result at each place depends only on the operands at that place.
var elementwise = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields("abs add and ceil clamp convert divide exponential floor log maximum minimum multiply negate not or power " +
		"remainder round_nearest_afz round_nearest_even rsqrt select sign sqrt subtract tanh xor") {
		all[name] = true
	}
	return all
}()

// shareMark is the attribute of a parameter that names the result that may reuse its memory.
const shareMark = "tf.aliasing_output"

// isMarked reports whether parameters are already marked.
func (f *flow) isMarked() bool {
	return slices.ContainsFunc(f.Parameters, func(v stablehlo.Value) bool { return strings.Contains(v.Attributes, shareMark) })
}
