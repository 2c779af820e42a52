package export

import (
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/nbcell"
)

// displayName is the name under which programs import package display; no cell uses it.
const displayName = "gonbatch__display"

// lastValue turns the expression at the end of a cell, whose value the kernel would show, into Go.
// In a main the value is printed. After declarations, a call becomes the cell's main; any other
// expression is only for display and is left out.
func (s *session) lastValue(cell *nbcell.Cell, file *gocell.File) {
	text := file.Text()
	last, ok := gocell.LastValue(text)
	if !ok {
		return
	}
	expression := text[last.Start:last.End]
	statement := last.Call && gocell.IsStatement(last.Callee)
	switch {
	case last.Bare && statement:
		expression = "func main() { flag.Parse(); " + expression + " }"
	case last.Bare:
		expression = strings.Repeat("\n", strings.Count(expression, "\n"))
	case statement:
		return
	default:
		expression = displayName + ".Result(" + expression + ")"
		s.decls.AddImport(cell, displayName, "gonbatch/kernel/display")
	}
	file.SetText(text[:last.Start] + expression + text[last.End:])
}
