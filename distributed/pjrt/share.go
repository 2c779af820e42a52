package pjrt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// share is shareMemory. Tests observe it or turn it off.
var share = shareMemory

// shareMemory lets the new values of variables reuse the memory of the old ones, so that XLA
// updates them in place. It marks the parameters of a StableHLO module (text form) with the results
// that replace them, and returns how many it marked.
//
// GoMLX gives a program the memory of the variables that it changes, but doesn't say which these
// are, nor which result is the new value of which variable. shareMemory finds both in the program:
// the new value is the result of the same type that is computed from the variable element by
// element, by the fewest operations.
//
// A wrong pair can cost time but never gives a wrong value, because XLA copies what is still
// needed. But no pair may contain a variable that the program leaves unchanged, because XLA's CPU
// plugin of 2025 then also copies all variables after it.
func shareMemory(module string) (string, int) {
	p, ok := parseMain(module)
	if !ok || p.isMarked() {
		return module, 0
	}
	pairs := p.nearest()
	pairs = append(pairs, p.replaced(pairs)...)
	return p.marked(pairs), len(pairs)
}

// pair is a parameter and the result that may reuse its memory, by index.
type pair struct {
	parameter, result int
	distance          int // The number of operations between them.
}

// nearest pairs each result with the variable that it is computed from element by element, closest
// pairs first.
func (p *mainFunction) nearest() []pair {
	var all []pair
	for i, result := range p.results {
		if shareable(result) {
			all = append(all, p.candidates(i)...)
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
func (p *mainFunction) candidates(result int) []pair {
	if i, ok := p.gathered(result); ok && p.fit(i, result) {
		return []pair{{i, result, 1}}
	}
	var found []pair
	distance := map[string]int{p.results[result].name: 0}
	for queue := []string{p.results[result].name}; len(queue) > 0 && len(distance) < reach; queue = queue[1:] {
		at := distance[queue[0]]
		if i, ok := p.parameterNumbers[queue[0]]; ok {
			if at > 0 && p.fit(i, result) {
				found = append(found, pair{i, result, at})
			}
			continue
		}
		s := p.statements[queue[0]]
		for _, operand := range s.operands {
			if _, seen := distance[operand]; !seen && elementwise[s.operation] {
				distance[operand] = at + 1
				queue = append(queue, operand)
			}
		}
	}
	return found
}

// gathered returns the variable of which this rank changes its part, while the other parts are
// gathered in place.
func (p *mainFunction) gathered(result int) (parameter int, ok bool) {
	gathers := false
	for name := p.results[result].name; ; {
		if i, isParameter := p.parameterNumbers[name]; isParameter {
			return i, gathers
		}
		s := p.statements[name]
		if s.operation != gatherInPlace && s.operation != "reshape" && s.operation != "dynamic_update_slice" {
			return 0, false
		}
		gathers = gathers || s.operation == gatherInPlace
		name = s.operands[0]
	}
}

// replaced pairs the remaining variables: those whose new value does not depend on the old one,
// such as sums that are reset. GoMLX's first results are the new values of variables, so every
// result before a paired one is also a new value. If as many variables of its type remain as
// results, all of them are changed.
func (p *mainFunction) replaced(pairs []pair) []pair {
	var parameters, results = map[string][]int{}, map[string][]int{}
	last := -1
	for _, c := range pairs {
		last = max(last, c.result)
	}
	for i, result := range p.results[:last+1] {
		if shareable(result) && !slices.ContainsFunc(pairs, func(c pair) bool { return c.result == i }) {
			results[result.kind()] = append(results[result.kind()], i)
		}
	}
	for i, v := range p.parameters {
		if isVariable(v) && !slices.ContainsFunc(pairs, func(c pair) bool { return c.parameter == i }) {
			parameters[v.kind()] = append(parameters[v.kind()], i)
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
func (p *mainFunction) fit(parameter, result int) bool {
	v := p.parameters[parameter]
	return isVariable(v) && v.kind() == p.results[result].kind()
}

// isVariable reports whether a parameter is a variable whose memory is worth sharing. GoMLX's names
// of variables begin with an underscore.
func isVariable(v value) bool { return strings.HasPrefix(v.name, "%_") && shareable(v) }

// shareable is false for scalars, which cost nothing and are often unchanged (learning rates), and
// for empty arrays.
func shareable(v value) bool { return anArray.MatchString(v.shape) }

var anArray = regexp.MustCompile(`^tensor<([1-9]\d*x)+[a-z]`)

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
func (p *mainFunction) isMarked() bool {
	return slices.ContainsFunc(p.parameters, func(v value) bool { return strings.Contains(v.attributes, shareMark) })
}

// marked returns the module with the parameters of the pairs marked.
func (p *mainFunction) marked(pairs []pair) string {
	marks := make([]string, len(p.parameters))
	for _, c := range pairs {
		marks[c.parameter] = fmt.Sprintf("%s = %d : i32", shareMark, c.result)
	}
	written := make([]string, len(p.parameters))
	for i, v := range p.parameters {
		written[i] = v.name + ": " + v.shape + v.attributesWith(marks[i])
	}
	return p.before + strings.Join(written, ", ") + p.after
}
