package stablehlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// New returns an operation with operands, their types, and results.
func New(name, attributes string, operands []Value, results ...Value) *Op {
	o := &Op{Name: name, Attributes: attributes}
	for _, v := range operands {
		o.Operands, o.Types = append(o.Operands, v.Name), append(o.Types, v.Type)
	}
	for _, v := range results {
		o.Results, o.Out = append(o.Results, v.Name), append(o.Out, v.Type)
	}
	return o
}

// Constant returns the constant with these elements, such as 0.0, or [1, 2].
func Constant(result Value, elements string) *Op {
	return New("stablehlo.constant", "{ value = dense<"+elements+"> : "+result.Type+" }", nil, result)
}

// Return returns the operation that ends a block.
func Return(results ...Value) *Op { return New("stablehlo.return", "", results) }

// CustomCall returns the call of a function that is registered by a name. The first results have
// the memory of the operands at these indices.
func CustomCall(target string, hasSideEffect bool, inPlace []int, operands []Value, results ...Value) *Op {
	var aliases []string
	for i, operand := range inPlace {
		index := strconv.Itoa(i)
		if len(results) == 1 {
			index = ""
		}
		aliases = append(aliases, fmt.Sprintf("#stablehlo.output_operand_alias<output_tuple_indices = [%s], operand_index = %d, operand_tuple_indices = []>", index, operand))
	}
	attributes := fmt.Sprintf("{ call_target_name = %q, api_version = 4 : i32, has_side_effect = %t, backend_config = {}, output_operand_aliases = [%s] }",
		target, hasSideEffect, strings.Join(aliases, ", "))
	return New("stablehlo.custom_call", attributes, operands, results...)
}

// Retarget makes a custom call call another function.
func (o *Op) Retarget(target string) {
	o.Attributes = strings.Replace(o.Attributes, `"`+o.Target()+`"`, `"`+target+`"`, 1)
	o.Change()
}

// Insert inserts operands.
func (o *Op) Insert(at int, all ...Value) {
	for i, v := range all {
		o.Operands, o.Types = slices.Insert(o.Operands, at+i, v.Name), slices.Insert(o.Types, at+i, v.Type)
	}
	o.Change()
}

// Written returns an operation that is written as the text says, whatever its fields are: for those
// that have no generic form that MLIR can read.
func (o *Op) Written(text string) *Op {
	o.text = text
	return o
}

// Text returns the operation's text with an indent.
func (o *Op) Text(indent string) string {
	var b strings.Builder
	o.write(&b, indent)
	return b.String()
}
