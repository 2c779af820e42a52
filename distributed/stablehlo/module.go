package stablehlo

import (
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

// Change notes that the operation was changed, so that it is written as it is now.
func (o *Op) Change() { o.text = "" }

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
