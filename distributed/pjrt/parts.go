package pjrt

import (
	"fmt"
	"regexp"
	"strings"
)

// updateLine matches a custom call that updates a variable, by a gradient or by the product that it
// is.
var updateLine = regexp.MustCompile(`^    (%\w+):3 = stablehlo\.custom_call @(` + adamTarget + `|` + trainedTarget + `)\(([^()]*)\)( \{.*\}) : \(([^()]*)\) -> \(([^()]*)\)$`)

// partTargets are the custom calls that update a part of a variable, by those that update a whole
// one.
var partTargets = map[string]string{adamTarget: adamPartTarget, trainedTarget: trainedPartTarget}

// withParts makes the custom call that updates a part of a variable, if that is copied out of the
// variable before and back after it, update the variable itself.
func withParts(module string) string {
	if !strings.Contains(module, `"stablehlo.dynamic_update_slice"`) {
		return module
	}
	return inMain(module, partsIn)
}

// partsIn is withParts for the statements of a function.
func partsIn(statements string) string {
	a, readers := arraysOf(statements), readersIn(statements)
	updated := map[string]string{} // The values that replace a part, by the call that computes it.
	for name, v := range a {
		if v.operation != "dynamic_update_slice" || len(v.operands) != 3 || readers[name] == 0 {
			continue
		}
		if call, ok := strings.CutSuffix(a.reshaped(v.operands[1]), "#0"); ok && readers[v.operands[1]] == 1 {
			updated[call] = name
		}
	}
	users := map[string]value{} // The last product that reads a value.
	lines := strings.Split(statements, "\n")
	for i, line := range lines {
		if m := productLine.FindStringSubmatch(line); m != nil && readers[m[1]] > 0 {
			for _, operand := range list(m[2])[:2] {
				users[operand] = value{name: m[1], shape: m[5]}
			}
		}
		m := updateLine.FindStringSubmatch(line)
		if m == nil || updated[m[1]] == "" {
			continue
		}
		whole, part := a[updated[m[1]]], a[list(m[3])[0]]
		variable, begin := whole.operands[0], whole.operands[2]
		if part.operation != "dynamic_slice" || part.operands[0] != variable || part.operands[1] != begin || whole.types[2] != "tensor<i64>" {
			continue
		}
		lines[i] = partCall(m, value{name: variable, shape: whole.shape}, begin, users[a.reshaped(variable)])
		written := fmt.Sprintf("    %s = \"stablehlo.", updated[m[1]])
		for k := i + 1; k < len(lines); k++ {
			switch {
			case strings.HasPrefix(lines[k], written):
				lines[k] = fmt.Sprintf("%sreshape\"(%s#0) : (%s) -> %s", written, m[1], whole.shape, whole.shape)
			case strings.HasPrefix(lines[k], "    "+whole.operands[1]+" = "):
				lines[k] = ""
			}
		}
	}
	return strings.Join(lines, "\n")
}

// reshaped returns what a value is a reshape of, or the value.
func (a arrays) reshaped(name string) string {
	for a[name].operation == "reshape" {
		name = a[name].operands[0]
	}
	return name
}

// partCall writes the custom call that updates the part of a variable that begins at an element.
// Unless after is empty, it runs after that: see ordered.
func partCall(update []string, variable value, begin string, after value) string {
	operands, types, results := list(update[3]), list(update[5]), list(update[6])
	operands = append([]string{variable.name}, append(operands[1:stateOperands:stateOperands], append([]string{begin}, operands[stateOperands:]...)...)...)
	types = append([]string{variable.shape}, append(types[1:stateOperands:stateOperands], append([]string{"tensor<i64>"}, types[stateOperands:]...)...)...)
	if after.name != "" {
		operands, types = append(operands, after.name), append(types, after.shape)
	}
	results[0] = variable.shape
	return fmt.Sprintf("    %s:3 = stablehlo.custom_call @%s(%s)%s : (%s) -> (%s)",
		update[1], partTargets[update[2]], strings.Join(operands, ", "), update[4], strings.Join(types, ", "), strings.Join(results, ", "))
}
