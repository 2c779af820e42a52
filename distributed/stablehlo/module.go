package stablehlo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Module is a program: functions, of which the one called main is run.
type Module struct {
	Functions []*Function
	// end is what follows the last function.
	end string
}

// Block is a list of operations: a function's, or a region's. The last one returns the results.
type Block struct{ Ops []*Op }

// Function is a function of a program.
type Function struct {
	Name       string // Without its @.
	Parameters []Value
	Results    []Value
	Block
	// before is the program's text before the function, since the previous one; keywords are those
	// before its name.
	before, indent, keywords string
	list                     bool // The results are in parentheses.
}

// Value is a parameter or a result of a function.
type Value struct {
	Name string // %x; "" for a result.
	Type string // tensor<8x8xf32>
	// Attributes are without braces; they may be empty.
	Attributes string
}

// Op is an operation.
type Op struct {
	Results  []string // %0
	Name     string   // stablehlo.add
	Operands []string
	Regions  []*Region
	// Attributes are in braces; they may be empty.
	Attributes string
	Types, Out []string // Those of the operands and of the results.
	// text is the operation as it was read; "" if it was not, or was changed.
	text string
}

// Region is a function inside an operation, such as the body of a loop.
type Region struct {
	Name       string
	Parameters []Value
	Block
}

// Main returns the function that the program runs; nil if there is none.
func (m *Module) Main() *Function { return m.Function("main") }

// Function returns a function by its name; nil if there is none.
func (m *Module) Function(name string) *Function {
	for _, f := range m.Functions {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Head returns the text before the first function: the module's name and attributes, and meshes.
func (m *Module) Head() string {
	if len(m.Functions) == 0 {
		return m.end
	}
	return m.Functions[0].before
}

// String returns the program's text. Operations that were not changed are as they were read.
func (m *Module) String() string {
	var b strings.Builder
	for _, f := range m.Functions {
		f.write(&b)
	}
	b.WriteString(m.end)
	return b.String()
}

func (f *Function) write(b *strings.Builder) {
	b.WriteString(f.before + f.indent + f.keywords + "@" + f.Name + "(")
	writeParameters(b, f.Parameters)
	b.WriteString(") -> ")
	results := make([]string, len(f.Results))
	for i, r := range f.Results {
		results[i] = r.typed()
	}
	if len(results) == 1 && !f.list {
		b.WriteString(results[0])
	} else {
		b.WriteString("(" + strings.Join(results, ", ") + ")")
	}
	b.WriteString(" {\n")
	writeOps(b, f.Ops, f.indent+step)
	b.WriteString(f.indent + "}\n")
}

// typed returns the type with the attributes.
func (v Value) typed() string {
	if v.Attributes == "" {
		return v.Type
	}
	return v.Type + " { " + v.Attributes + " }"
}

// Add adds an attribute.
func (v *Value) Add(attribute string) {
	if v.Attributes != "" {
		attribute = v.Attributes + ", " + attribute
	}
	v.Attributes = attribute
}

// Change notes that the operation was changed, so that it is written anew.
func (o *Op) Change() { o.text = "" }

// Result returns the only result; "" if there are several or none.
func (o *Op) Result() string {
	if len(o.Results) != 1 {
		return ""
	}
	return o.Results[0]
}

// Blocks returns the blocks of all functions, and of all regions in them.
func (m *Module) Blocks() (all []*Block) {
	for _, f := range m.Functions {
		all = f.addBlocks(all)
	}
	return all
}

func (b *Block) addBlocks(all []*Block) []*Block {
	all = append(all, b)
	for _, o := range b.Ops {
		for _, r := range o.Regions {
			all = r.addBlocks(all)
		}
	}
	return all
}

// Replace replaces operations by those that f returns; nil keeps one.
func (b *Block) Replace(f func(*Op) []*Op) {
	all := make([]*Op, 0, len(b.Ops))
	for _, o := range b.Ops {
		if by := f(o); by != nil {
			all = append(all, by...)
		} else {
			all = append(all, o)
		}
	}
	b.Ops = all
}

func writeOps(to *strings.Builder, ops []*Op, indent string) {
	for _, o := range ops {
		o.write(to, indent)
	}
}

// isAsRead reports whether the operation and all in it are as they were read.
func (o *Op) isAsRead() bool {
	if o.text == "" {
		return false
	}
	for _, r := range o.Regions {
		for _, inner := range r.Ops {
			if !inner.isAsRead() {
				return false
			}
		}
	}
	return true
}

func (o *Op) write(b *strings.Builder, indent string) {
	if o.isAsRead() {
		b.WriteString(o.text)
		return
	}
	b.WriteString(indent)
	if len(o.Results) > 0 {
		b.WriteString(strings.Join(o.Results, ", ") + " = ")
	}
	b.WriteString(`"` + o.Name + `"(` + strings.Join(o.Operands, ", ") + ")")
	for i, r := range o.Regions {
		if i == 0 {
			b.WriteString(" ({\n")
		} else {
			b.WriteString(indent + "}, {\n")
		}
		b.WriteString(indent + step + "^" + r.Name + "(")
		writeParameters(b, r.Parameters)
		b.WriteString(") :\n")
		writeOps(b, r.Ops, indent+regionStep)
	}
	if len(o.Regions) > 0 {
		b.WriteString(indent + "})")
	}
	if o.Attributes != "" {
		b.WriteString(" " + o.Attributes)
	}
	out := strings.Join(o.Out, ", ")
	if len(o.Out) != 1 {
		out = "(" + out + ")"
	}
	b.WriteString(" : (" + strings.Join(o.Types, ", ") + ") -> " + out + "\n")
}

func writeParameters(b *strings.Builder, all []Value) {
	for i, p := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name + ": " + p.typed())
	}
}

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

// Target returns the name of the function that a custom call calls; "" of another operation.
func (o *Op) Target() string {
	if o.Name != "stablehlo.custom_call" {
		return ""
	}
	target, _ := o.Attribute("call_target_name")
	return strings.Trim(target, `"`)
}

// Retarget makes a custom call call another function.
func (o *Op) Retarget(target string) {
	o.Attributes = strings.Replace(o.Attributes, `"`+o.Target()+`"`, `"`+target+`"`, 1)
	o.Change()
}

// Callee returns the name of the function of the program that a call calls; "" of another
// operation.
func (o *Op) Callee() string {
	callee, _ := o.Attribute("callee")
	return strings.TrimPrefix(callee, "@")
}

// Operand returns an operand with its type.
func (o *Op) Operand(i int) Value { return Value{Name: o.Operands[i], Type: o.Types[i]} }

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
