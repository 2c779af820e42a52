package pjrt

import (
	"fmt"
	"slices"
	"strings"
)

// updateLine matches an update by a gradient or by the product that is one.
var updateLine = updatePattern(adamTarget + "|" + trainedTarget)

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
	puts := a.putsOf(readers)
	lines := strings.Split(statements, "\n")
	at, written := map[string]int{}, map[string]string{} // The numbers of lines, and new lines, by the values that they define.
	users := map[string]value{}                          // The last product that reads a value.
	for i, line := range lines {
		if m := productLine.ofLine(line); m != nil && readers[m[1]] > 0 {
			for _, operand := range list(m[2])[:2] {
				users[operand] = value{name: m[1], shape: m[5]}
			}
		}
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		at[name] = i
		m := updateLine.ofLine(line)
		if m == nil {
			continue
		}
		p, ok := puts[m[1]]
		old := a[list(m[3])[0]]
		if !ok || old.operation != "dynamic_slice" || !slices.Equal(old.operands, []string{p.whole, p.begin}) {
			continue
		}
		lines[i] = partCall(m, p, users[a.reshaped(p.whole)])
		written[p.part] = fmt.Sprintf("    %s = \"stablehlo.dynamic_slice\"(%s#0, %s) %s: (%s, tensor<i64>) -> %s", p.part, m[1], p.begin, old.attributes, p.shape, old.shape)
		written[p.result] = fmt.Sprintf("    %s = \"stablehlo.reshape\"(%s#0) : (%s) -> %s", p.result, m[1], p.shape, p.shape)
	}
	for name, line := range written {
		lines[at[name]] = line
	}
	return strings.Join(lines, "\n")
}

// put is a dynamic_update_slice that puts a part that was updated into the whole.
type put struct {
	result, shape      string
	whole, part, begin string // The operands. The part is the reshape that adamCall writes.
}

// putsOf returns the statements that put parts back that nothing else reads, by the custom calls
// that have updated the parts.
func (a arrays) putsOf(readers map[string]int) map[string]put {
	all := map[string]put{}
	for name, v := range a {
		if v.operation != "dynamic_update_slice" || len(v.operands) != 3 || v.types[2] != "tensor<i64>" || readers[name] == 0 {
			continue
		}
		part := a[v.operands[1]]
		if part.operation != "reshape" || readers[v.operands[1]] != 1 {
			continue
		}
		if call, ok := strings.CutSuffix(part.operands[0], "#0"); ok {
			all[call] = put{result: name, shape: v.shape, whole: v.operands[0], part: v.operands[1], begin: v.operands[2]}
		}
	}
	return all
}

// reshaped returns what a value is a reshape of, or the value.
func (a arrays) reshaped(name string) string {
	for a[name].operation == "reshape" {
		name = a[name].operands[0]
	}
	return name
}

// partCall writes the custom call that updates a part of a variable. Unless after is empty, it runs
// after that: see ordered.
func partCall(update []string, p put, after value) string {
	operands, types, results := list(update[3]), list(update[5]), list(update[6])
	operands = slices.Insert(operands, stateOperands, p.begin)
	types = slices.Insert(types, stateOperands, "tensor<i64>")
	operands[0], types[0], results[0] = p.whole, p.shape, p.shape
	if after.name != "" {
		operands, types = append(operands, after.name), append(types, after.shape)
	}
	return fmt.Sprintf("    %s:3 = stablehlo.custom_call @%s(%s)%s : (%s) -> (%s)",
		update[1], partTargets[update[2]], strings.Join(operands, ", "), update[4], strings.Join(types, ", "), strings.Join(results, ", "))
}
