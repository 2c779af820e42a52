package pjrt

import (
	"fmt"
	"slices"
	"strings"
)

// minTrained is the smallest gradient that stays in the cache, in elements: a smaller one may stay
// there by itself. mostTrained is the largest contracted dimension of the product: with more, a
// product computes for longer than its result takes to memory and back. minTrainedSide is the
// smallest side of the gradient: narrow tiles are slow.
var minTrained, mostTrained, minTrainedSide = 1 << 20, 128, 256

// updatePattern matches a custom call of a target that updates a variable, as adamCall and
// trainedCall write it: its name, the target, the operands, the attributes, and the types of the
// operands and of the results.
func updatePattern(targets string) pattern {
	return wholePattern(`:3 = stablehlo.custom_call @`, `    (%\w+):3 = stablehlo\.custom_call @(`+targets+`)\(([^()]*)\)( \{.*\}) : \(([^()]*)\) -> \(([^()]*)\)`)
}

// adamLine matches an update by a gradient.
var adamLine = updatePattern(adamTarget)

// formLine matches the form of a product, as operation.kernelCall writes it.
var formLine = wholePattern(` : tensor<7xi64>`, `    (%\w+) = stablehlo\.constant dense<\[([-\d, ]+)\]> : tensor<7xi64>`)

// stateOperands are the weight and its two moments.
const stateOperands = 3

// withTrained makes one custom call of a product and the update of Adam whose gradient it is, if
// nothing else reads the gradient. Otherwise it would be written to memory and read again.
func withTrained(module string) string {
	mu.Lock()
	on := optional.trained
	mu.Unlock()
	if !on || !strings.Contains(module, "@"+adamTarget+"(") {
		return module
	}
	return inMain(module, trainedIn)
}

func trainedIn(statements string) string {
	readers, products, forms := readersIn(statements), map[string][]string{}, map[string][]int{}
	a := arraysOf(statements)
	lines := strings.Split(statements, "\n")
	for i, line := range lines {
		if m := formLine.ofLine(line); m != nil {
			forms[m[1]] = numbersIn(m[2])
		} else if m := productLine.ofLine(line); m != nil {
			products[m[1]] = m
		} else if m := adamLine.ofLine(line); m != nil {
			gradient, alone := a.unshaped(list(m[3])[stateOperands], readers)
			if p := products[gradient]; p != nil && alone && isTrained(forms[list(p[2])[2]]) {
				lines[i] = trainedCall(m, list(p[2]), list(p[4]))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// unshaped returns what a value is a reshape of, and whether nothing else reads it.
func (a arrays) unshaped(value string, readers map[string]int) (name string, alone bool) {
	alone = readers[value] == 1
	for a[value].operation == "reshape" {
		value = a[value].operands[0]
		alone = alone && readers[value] == 1
	}
	return value, alone
}

// isTrained reports whether a product of that form should not be in memory.
func isTrained(form []int) bool {
	if len(form) != len(product{}.form()) {
		return false
	}
	pairs, m, n, k, alone := form[0], form[1], form[2], form[3], form[6]
	return pairs == 1 && alone == 0 && m*n >= minTrained && min(m, n) >= minTrainedSide && k <= mostTrained
}

// trainedCall writes the custom call for that of an update, and the operands of the product and
// their types.
func trainedCall(update, product, productTypes []string) string {
	operands := trainedOperands(list(update[3]), product)
	types := trainedOperands(list(update[5]), productTypes)
	return fmt.Sprintf("    %s:3 = stablehlo.custom_call @%s(%s)%s : (%s) -> (%s)",
		update[1], trainedTarget, strings.Join(operands, ", "), update[4], strings.Join(types, ", "), update[6])
}

// trainedOperands has those of an update, with a product's instead of the gradient. What only
// orders the product is the last.
func trainedOperands(update, product []string) []string {
	const factors = 3 // And the form.
	return slices.Concat(update[:stateOperands], product[:factors], update[stateOperands+1:], product[factors:])
}
