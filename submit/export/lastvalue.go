package export

import (
	"slices"
	"strings"

	"gonbatch/internal/lastexpr"
)

// displayName is the name by which programs import package display; no cell has it.
const displayName = "gonbatch__display"

// lastValue makes Go of an expression that a cell ends in, whose value the kernel would show. In a main the value is printed. Behind
// declarations, a call is the cell's main; anything else is there to be looked at, and left out.
func (s *session) lastValue(cell *cellInfo, code *cellCode, tail string) {
	text := strings.Join(code.goLines, "\n")
	last, ok := lastexpr.Find(header + text + "\n" + tail)
	if !ok {
		return
	}
	start, end := last.Start-len(header), last.End-len(header)
	before, expression, after := text[:start], text[start:end], text[end:]
	statement := last.Call && !slices.Contains(valueOnly, last.Callee)
	switch {
	case last.Bare && statement:
		expression = "func main() { flag.Parse(); " + expression + " }"
	case last.Bare:
		expression = strings.Repeat("\n", strings.Count(expression, "\n"))
	case statement:
		return
	default:
		expression = displayName + ".Result(" + expression + ")"
		s.addImport(cell, displayName, "gonbatch/display")
	}
	code.goLines = strings.Split(before+expression+after, "\n")
}

// valueOnly are the built-in functions, and types, whose call is no statement.
var valueOnly = []string{
	"append", "cap", "complex", "imag", "len", "make", "max", "min", "new", "real", "bool", "byte", "float32", "float64", "int", "int8",
	"int16", "int32", "int64", "rune", "string", "uint", "uint8", "uint16", "uint32", "uint64", "any", "error",
}

// addImport adds an import that no cell wrote.
func (s *session) addImport(cell *cellInfo, name, path string) {
	s.decls.imports[name] = &importDecl{name: name, path: path, cell: cell, line: 1}
}
