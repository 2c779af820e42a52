package pjrt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// arrayOperation matches an operation without a body, with its types.
var arrayOperation = wholePattern(`"stablehlo.`, `    (%\w+) = "stablehlo\.(\w+)"\(([^()]*)\) ((?:\{[^{}]*\} )?): \(([^()]*)\) -> (tensor<[^<>]*>)`)

// arrays are the operations of a function, by their results.
type arrays map[string]arrayOf

// arrayOf is an operation whose result is an array of that shape.
type arrayOf struct {
	statement
	attributes string   // With a space behind; may be empty.
	types      []string // Of the operands.
	shape      string
}

// fill is the operation that fills an array with a number.
const fill = "fill"

func arraysOf(statements string) arrays {
	all := arrays{}
	for _, m := range arrayOperation.all(statements) {
		v := arrayOf{statement{operation: m[2], operands: list(m[3])}, m[4], list(m[5]), m[6]}
		if v.operation == "broadcast_in_dim" && m[5] == "tensor<f32>" {
			v.operation = fill
		}
		all[m[1]] = v
	}
	return all
}

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
	for _, argument := range list(strings.TrimSuffix(rest, ")")) {
		t.arguments = append(t.arguments, parseTerm(argument))
	}
	return t
}

func (t term) isNumber() bool { return strings.ToUpper(t.name) == t.name }

// match reports whether a value is computed as the term says, and adds what the names stand for. If
// it reports false, some of these may be wrong.
func (a arrays) match(t term, value string, names map[string]string) bool {
	v := a[value]
	switch {
	case len(t.arguments) > 0:
		return v.operation == t.name && bind(names, t.label, value) && a.matchOperands(t, v.operands, names)
	case t.isNumber():
		return v.operation == fill && bind(names, t.name, v.operands[0])
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
func (a arrays) matchOperands(t term, operands []string, names map[string]string) bool {
	orders := [][]string{operands}
	if len(operands) == 2 && (t.name == "add" || t.name == "multiply") {
		orders = append(orders, []string{operands[1], operands[0]})
	}
	for _, order := range orders {
		tried := maps.Clone(names)
		if len(order) == len(t.arguments) && a.matchAll(t.arguments, order, tried) {
			maps.Copy(names, tried)
			return true
		}
	}
	return false
}

func (a arrays) matchAll(terms []term, values []string, names map[string]string) bool {
	for i, t := range terms {
		if !a.match(t, values[i], names) {
			return false
		}
	}
	return true
}

// adamOf returns what the names of the update stand for whose result is the value.
func (a arrays) adamOf(value string) (names map[string]string, ok bool) {
	for _, t := range adamTerms {
		names = map[string]string{}
		if a.match(t, value, names) {
			return names, true
		}
	}
	return nil, false
}

// unscaled replaces the gradient of an update by what it is a multiple of, such as a sum over the
// ranks, and names the factor, so that no loop multiplies the whole gradient. It returns the
// statements that this needs. They follow adamConstants.
func (a arrays) unscaled(call string, names map[string]string) string {
	var written strings.Builder
	var moves []arrayOf // Reshapes and slices after a multiplication, the last first.
	value, scale := names["g"], call+"_one"
	for n := 0; ; n++ {
		v := a[value]
		if v.operation == "reshape" || v.operation == "slice" {
			moves, value = append(moves, v), v.operands[0]
			continue
		}
		factor := a.factor(v)
		if factor < 0 {
			break
		}
		product, number := scale, a[v.operands[factor]].operands[0]
		scale, value = fmt.Sprintf("%s_scale_%d", call, n), v.operands[1-factor]
		fmt.Fprintf(&written, "    %s = \"stablehlo.%s\"(%s, %s) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n", scale, v.operation, product, number)
	}
	names["SCALE"] = scale
	if written.Len() == 0 {
		return ""
	}
	for i, v := range slices.Backward(moves) {
		moved := fmt.Sprintf("%s_gradient_%d", call, i)
		fmt.Fprintf(&written, "    %s = \"stablehlo.%s\"(%s) %s: (%s) -> %s\n", moved, v.operation, value, v.attributes, v.types[0], v.shape)
		value = moved
	}
	names["g"] = value
	return written.String()
}

// factor returns which operand of a multiplication or division is a number for all elements, or -1.
func (a arrays) factor(v arrayOf) int {
	for i, operand := range v.operands {
		if a[operand].operation == fill && (v.operation == "multiply" || v.operation == "divide" && i == 1) {
			return i
		}
	}
	return -1
}

// withAdam replaces the updates of large variables by Adam or AdamW, and returns how many. XLA
// computes the new weights and each of the two moments by itself, so it reads the gradient and the
// moments several times from memory.
func withAdam(module string) (string, int) {
	if !strings.Contains(module, `"stablehlo.sqrt"`) {
		return module, 0
	}
	replaced := 0
	module = inMain(module, func(statements string) string {
		statements, replaced = updatesByAdam(statements)
		return statements
	})
	return module, replaced
}

func updatesByAdam(statements string) (string, int) {
	a := arraysOf(statements)
	moments := map[string]string{} // The new moments, by the values that they replace as results.
	out, _ := arrayOperation.replace(statements, func(m []string) (string, bool) {
		if m[2] != "subtract" || sizeOf(m[6]) < minAdam {
			return "", false
		}
		names, ok := a.adamOf(m[1])
		if !ok {
			return "", false
		}
		call := "%gonbatch_adam_" + strings.TrimPrefix(m[1], "%")
		before := a.unscaled(call, names)
		moments[names["new_m"]], moments[names["new_v"]] = call+"#1", call+"#2"
		return adamConstants(call) + before + adamCall(call, m[1], m[6], names), true
	})
	out, _ = mainReturn.replace(out, func(m []string) (string, bool) {
		values := list(m[1])
		for i, value := range values {
			values[i] = cmp.Or(moments[value], value)
		}
		return `    "stablehlo.return"(` + strings.Join(values, ", ") + ")", true
	})
	return out, len(moments) / 2
}

// adamConstants writes the numbers that an update may lack.
func adamConstants(call string) string {
	return fmt.Sprintf("    %[1]s_zero = stablehlo.constant dense<0.0> : tensor<f32>\n    %[1]s_one = stablehlo.constant dense<1.0> : tensor<f32>\n", call)
}

// adamCall writes the custom call. Without a decay of the weights, it is 0.
func adamCall(call, result, shape string, names map[string]string) string {
	operands, types := []string{names["w"], names["m"], names["v"], names["g"]}, strings.Repeat(shape+", ", 4)
	for _, name := range adamScalars {
		operands = append(operands, cmp.Or(names[name], call+"_zero"))
	}
	types += strings.TrimSuffix(strings.Repeat("tensor<f32>, ", len(adamScalars)), ", ")
	var aliases []string
	for i := range 3 {
		aliases = append(aliases, fmt.Sprintf("#stablehlo.output_operand_alias<output_tuple_indices = [%d], operand_index = %d, operand_tuple_indices = []>", i, i))
	}
	return fmt.Sprintf("    %[1]s:3 = stablehlo.custom_call @%[2]s(%[3]s) {api_version = 4 : i32, has_side_effect = false, backend_config = {}, output_operand_aliases = [%[4]s]} : (%[5]s) -> (%[6]s, %[6]s, %[6]s)\n"+
		"    %[7]s = \"stablehlo.reshape\"(%[1]s#0) : (%[6]s) -> %[6]s",
		call, adamTarget, strings.Join(operands, ", "), strings.Join(aliases, ", "), types, shape, result)
}

// sizeOf returns the number of elements of a float32 tensor, or 0 of another one.
func sizeOf(tensor string) int {
	dimensions := dimensionsOf(tensor)
	if dimensions == nil {
		return 0
	}
	size := 1
	for _, n := range dimensions {
		size *= n
	}
	return size
}
