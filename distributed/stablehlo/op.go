package stablehlo

import (
	"slices"
	"strings"
)

// Result returns the only result; "" if there are several or none.
func (o *Op) Result() string {
	if len(o.Results) != 1 {
		return ""
	}
	return o.Results[0]
}

// Target returns the name of the function that a custom call calls; "" of another operation.
func (o *Op) Target() string {
	if o.Name != "stablehlo.custom_call" {
		return ""
	}
	target, _ := o.Attribute("call_target_name")
	return strings.Trim(target, `"`)
}

// Callee returns the name of the function of the program that a call calls; "" of another
// operation.
func (o *Op) Callee() string {
	callee, _ := o.Attribute("callee")
	return strings.TrimPrefix(callee, "@")
}

// Operand returns an operand with its type.
func (o *Op) Operand(i int) Value { return Value{Name: o.Operands[i], Type: o.Types[i]} }

// Uses returns the names of the values that the operation and those in its regions read, each once.
func (o *Op) Uses() []string {
	all := slices.Clone(o.Operands)
	for _, r := range o.Regions {
		for _, inner := range r.Ops {
			all = append(all, inner.Uses()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Ints returns the numbers of an attribute such as `rhs_dilation = array<i64: 1, 1>`, in order; nil
// if there is no such attribute.
func (o *Op) Ints(attribute string) []int {
	value, ok := o.Attribute(attribute)
	if !ok {
		return nil
	}
	value, _, _ = strings.Cut(value, " : ") // A type after the value has numbers too.
	return Numbers(strings.TrimPrefix(value, "array<i64"))
}

// Attribute returns the text of an attribute's value.
func (o *Op) Attribute(name string) (value string, ok bool) {
	rest, ok := o.afterName(name)
	if !ok {
		return "", false
	}
	depth := 0
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			i += StringLength(rest[i+1:])
		case strings.IndexByte("([{<", c) >= 0:
			depth++
		case depth == 0 && strings.IndexByte(",}>\n", c) >= 0:
			return strings.TrimSpace(rest[:i]), true
		case strings.IndexByte(")]}>", c) >= 0:
			depth--
		}
	}
	return rest, true
}

// afterName returns what follows the name of an attribute. The names of others may end in it.
func (o *Op) afterName(name string) (rest string, ok bool) {
	for rest = o.Attributes; ; {
		var before string
		if before, rest, ok = strings.Cut(rest, name+" = "); !ok {
			return "", false
		}
		if before == "" || strings.ContainsRune(" {<,\n", rune(before[len(before)-1])) {
			return rest, true
		}
	}
}
