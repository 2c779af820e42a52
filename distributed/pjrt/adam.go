package pjrt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonbatch/distributed/stablehlo"
)

// minAdam is the smallest variable that a kernel updates, in elements: XLA computes the update of a
// small one together with others.
var minAdam = 1 << 14

// A term is an operation on arrays of one shape, with its arguments in parentheses. A lower-case
// name is an array, an upper-case one a number that fills an array. A name and a colon before a
// term name its value. The terms below are the updates of Adam and AdamW as GoMLX's optimizer.Adam
// writes them. The operands of additions and multiplications may be in any order.
const (
	adamMoment1 = "new_m:add(multiply(KEEP1, m), multiply(ADD1, g))"
	adamMoment2 = "new_v:add(multiply(KEEP2, v), multiply(ADD2, multiply(g, g)))"
	adamStep    = "divide(multiply(RATE, multiply(" + adamMoment1 + ", DEBIAS1)), add(sqrt(multiply(" + adamMoment2 + ", DEBIAS2)), EPSILON))"
)

var adamTerms = []term{
	parseTerm("subtract(w, " + adamStep + ")"),
	parseTerm("subtract(w, add(" + adamStep + ", multiply(RATE, multiply(w, DECAY))))"),
}

// adamScalars are the scalars in the order of the custom call.
var adamScalars = []string{"KEEP1", "ADD1", "DEBIAS1", "KEEP2", "ADD2", "DEBIAS2", "EPSILON", "RATE", "DECAY", "SCALE"}

// term is a parsed term.
type term struct {
	label, name string
	arguments   []term
}

func parseTerm(text string) term {
	head, rest, ok := strings.Cut(text, "(")
	if !ok {
		return term{name: text}
	}
	t := term{name: head}
	if label, name, ok := strings.Cut(head, ":"); ok {
		t.label, t.name = label, name
	}
	for _, argument := range stablehlo.List(strings.TrimSuffix(rest, ")")) {
		t.arguments = append(t.arguments, parseTerm(argument))
	}
	return t
}

func (t term) isNumber() bool { return strings.ToUpper(t.name) == t.name }

// match reports whether a value is computed as the term says, and adds what the names stand for. If
// it reports false, some of these may be wrong.
func (f *flow) match(t term, value string, names map[string]string) bool {
	switch {
	case len(t.arguments) > 0:
		return f.kind(value) == t.name && bind(names, t.label, value) && f.matchOperands(t, f.by[value].Operands, names)
	case t.isNumber():
		return f.isFill(value) && bind(names, t.name, f.by[value].Operands[0])
	}
	return bind(names, t.name, value)
}

// bind adds a name, unless it is empty, and reports whether it didn't stand for something else.
func bind(names map[string]string, name, value string) bool {
	if known, ok := names[name]; ok {
		return known == value
	}
	if name != "" {
		names[name] = value
	}
	return true
}

// matchOperands is match for the arguments, in one of the orders that the operation allows.
func (f *flow) matchOperands(t term, operands []string, names map[string]string) bool {
	orders := [][]string{operands}
	if len(operands) == 2 && (t.name == "add" || t.name == "multiply") {
		orders = append(orders, []string{operands[1], operands[0]})
	}
	for _, order := range orders {
		tried := maps.Clone(names)
		if len(order) == len(t.arguments) && f.matchAll(t.arguments, order, tried) {
			maps.Copy(names, tried)
			return true
		}
	}
	return false
}

func (f *flow) matchAll(terms []term, values []string, names map[string]string) bool {
	for i, t := range terms {
		if !f.match(t, values[i], names) {
			return false
		}
	}
	return true
}

// adamOf returns what the names of the update stand for whose result is the value.
func (f *flow) adamOf(value string) (names map[string]string, ok bool) {
	for _, t := range adamTerms {
		names = map[string]string{}
		if f.match(t, value, names) {
			return names, true
		}
	}
	return nil, false
}

// unscaled replaces the gradient of an update by what it is a multiple of, such as a sum over the
// ranks, and names the factor, so that no loop multiplies the whole gradient. It returns the
// operations that this needs. They follow those of adamConstants.
func (f *flow) unscaled(call string, names map[string]string) (ops []*stablehlo.Op) {
	var moves []*stablehlo.Op // Reshapes and slices after a multiplication, the last first.
	value, scale := names["g"], call+"_one"
	for n := 0; ; n++ {
		if kind := f.kind(value); kind == "reshape" || kind == "slice" {
			moves, value = append(moves, f.by[value]), f.by[value].Operands[0]
			continue
		}
		factor := f.factor(value)
		if factor < 0 {
			break
		}
		o, before := f.by[value], scale
		scale, value = fmt.Sprintf("%s_scale_%d", call, n), o.Operands[1-factor]
		ops = append(ops, stablehlo.New(o.Name, "", []stablehlo.Value{scalar(before), scalar(f.by[o.Operands[factor]].Operands[0])}, scalar(scale)))
	}
	names["SCALE"] = scale
	if len(ops) == 0 {
		return nil
	}
	for i, o := range slices.Backward(moves) {
		moved := fmt.Sprintf("%s_gradient_%d", call, i)
		ops = append(ops, stablehlo.New(o.Name, o.Attributes, []stablehlo.Value{{Name: value, Type: o.Types[0]}}, stablehlo.Value{Name: moved, Type: o.Out[0]}))
		value = moved
	}
	names["g"] = value
	return ops
}

// scalar is a number.
func scalar(name string) stablehlo.Value { return stablehlo.Value{Name: name, Type: "tensor<f32>"} }

// factor returns which operand of a multiplication or division is a number for all elements, or -1.
func (f *flow) factor(value string) int {
	kind := f.kind(value)
	if kind != "multiply" && kind != "divide" {
		return -1
	}
	for i, operand := range f.by[value].Operands {
		if f.isFill(operand) && (kind == "multiply" || i == 1) {
			return i
		}
	}
	return -1
}

// updateByAdam replaces the updates of large variables by Adam or AdamW, and returns how many. XLA
// computes the new weights and each of the two moments by itself, so it reads the gradient and the
// moments several times from memory.
func updateByAdam(f *flow) (replaced int) {
	moments := map[string]string{} // The new moments, by the values that they replace as results.
	f.Replace(func(o *stablehlo.Op) []*stablehlo.Op {
		if o.Name != "stablehlo.subtract" || sizeOf(o.Out[0]) < minAdam {
			return nil
		}
		names, ok := f.adamOf(o.Results[0])
		if !ok {
			return nil
		}
		replaced++
		call := own("adam", o.Results[0])
		ops := append(adamConstants(call), f.unscaled(call, names)...)
		update := adamCall(call, o.Out[0], names)
		moments[names["new_m"]], moments[names["new_v"]] = update.Results[1], update.Results[2]
		result := stablehlo.New("stablehlo.reshape", "", []stablehlo.Value{{Name: update.Results[0], Type: o.Out[0]}}, resultOf(o))
		return append(ops, update, result)
	})
	if replaced > 0 {
		last := f.Ops[len(f.Ops)-1]
		for i, value := range last.Operands {
			last.Operands[i] = cmp.Or(moments[value], value)
		}
		last.Change()
	}
	return replaced
}

// adamConstants returns the numbers that an update may lack.
func adamConstants(call string) []*stablehlo.Op {
	return []*stablehlo.Op{stablehlo.Constant(scalar(call+"_zero"), "0.0"), stablehlo.Constant(scalar(call+"_one"), "1.0")}
}

// adamCall returns the custom call, whose results are the new weights and moments. Without a decay
// of the weights, it is 0.
func adamCall(call, shape string, names map[string]string) *stablehlo.Op {
	var operands, results []stablehlo.Value
	for _, name := range []string{"w", "m", "v", "g"} {
		operands = append(operands, stablehlo.Value{Name: names[name], Type: shape})
	}
	for _, name := range adamScalars {
		operands = append(operands, scalar(cmp.Or(names[name], call+"_zero")))
	}
	for _, name := range []string{"w", "m", "v"} {
		results = append(results, stablehlo.Value{Name: call + "_new_" + name, Type: shape})
	}
	return stablehlo.CustomCall(adamTarget, false, []int{0, 1, 2}, operands, results...)
}

// sizeOf returns the number of elements of a float32 tensor, or 0 of another one.
func sizeOf(tensor string) int {
	if dimensionsOf(tensor) == nil {
		return 0
	}
	return stablehlo.Size(tensor)
}
