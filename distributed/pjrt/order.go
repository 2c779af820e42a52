package pjrt

import (
	"fmt"
	"slices"
	"strings"
)

// productLine matches a custom call that multiplies matrices, as operation.kernelCall writes it:
// its name, the operands, the attributes, their types, and the result's. A fourth operand orders
// it.
var productLine = wholePattern(` = stablehlo.custom_call @`+productTarget+`(`, `    (%\w+) = stablehlo\.custom_call @`+productTarget+`\(([^()]*)\)( \{.*\}) : \(([^()]*)\) -> (tensor<[^<>]*>)`)

// orderProducts is ordered. Tests turn it off.
var orderProducts = ordered

// ordered adds to the products that compute gradients of weights an operand that orders them after
// the products that use these weights.
//
// XLA updates a variable in place only if nothing can still read its old value. The gradient of a
// layer's inputs reads the weights, and the update needs only that of the weights: without an
// order, XLA copies all large weights in each step.
func ordered(module string) string {
	t, _ := cutMain(module)
	marked := map[string]string{} // The types of the variables that are updated in place.
	for _, v := range t.values() {
		if strings.Contains(v.attributes, shareMark) {
			marked[v.name] = v.shape
		}
	}
	if len(marked) == 0 {
		return module
	}
	return inMain(module, func(statements string) string { return orderedIn(statements, marked) })
}

// orderedIn is ordered for the statements of a function, with the types of the marked parameters.
func orderedIn(statements string, marked map[string]string) string {
	readers := map[string]value{} // The last product that uses a variable of a type.
	readersOf := readersIn(statements)
	lines := strings.Split(statements, "\n")
	for i, line := range lines {
		m := productLine.ofLine(line)
		if m == nil || readersOf[m[1]] == 0 { // A product that isn't used must remain so.
			continue
		}
		name, out := m[1], m[5]
		if reader, ok := readers[out]; ok {
			lines[i] = fmt.Sprintf("    %s = stablehlo.custom_call @%s(%s, %s)%s : (%s, %s) -> %s",
				name, productTarget, m[2], reader.name, m[3], m[4], reader.shape, out)
		}
		for _, operand := range list(m[2])[:2] {
			if weights, ok := marked[operand]; ok {
				readers[weights] = value{name: name, shape: out}
			}
		}
	}
	return strings.Join(lines, "\n")
}

// valueNames returns the names of values in a text, each once.
func valueNames(text string) (names []string) {
	for _, part := range strings.Split(text, "%")[1:] {
		names = append(names, "%"+part[:identifierLength([]byte(part))])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readersIn counts the statements that read each value. Only those count on which the results of
// the function depend.
func readersIn(statements string) map[string]int {
	readers := map[string]int{}
	isRead := func(result string) bool { return readers[result] > 0 }
	var all []string
	for text := ""; statements != ""; all = append(all, text) {
		text, statements = statementOf(statements)
	}
	for _, text := range slices.Backward(all) {
		if results, read, ok := strings.Cut(text, " = "); ok && strings.HasPrefix(text, "    %") {
			results, _, _ = strings.Cut(strings.TrimSpace(results), ":")
			if !slices.ContainsFunc(list(results), isRead) {
				continue
			}
			text = read
		}
		for _, name := range valueNames(text) {
			readers[name]++
		}
	}
	return readers
}
