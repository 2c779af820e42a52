package relay

import (
	"fmt"
	"slices"

	"gonbatch/internal/gocell"
)

// declaredElsewhere says which cell declares the name that a compiler message calls undefined: a
// cell that failed, the one that removed it, or a cell of the saved notebook that has not run. It
// returns "" if there is none.
func (e *execution) declaredElsewhere(message string) string {
	key := gocell.Undefined(message)
	if key == "" {
		return ""
	}
	for _, cell := range slices.Backward(e.relay.executed) {
		if !cell.succeeded && cell.count != e.count && gocell.Declares(cell.code, key) {
			why := ""
			if cell.problem != "" {
				why = " (" + cell.problem + ")"
			}
			return fmt.Sprintf("; cell [%d] declares it, but failed%s: correct it and run it again", cell.count, why)
		}
	}
	if removed := e.removed(key); removed != "" {
		return removed
	}
	if number := e.relay.opts.Magics.Declaring(key); number > 0 {
		return fmt.Sprintf("; cell %d of the notebook declares it: run that cell first", number)
	}
	return ""
}

// removed says which cell has removed a declaration.
func (e *execution) removed(key string) (removed string) {
	declared := false
	for _, cell := range e.relay.executed {
		if call, ok := gocell.Forgetting(cell.code, key); ok && declared {
			removed = fmt.Sprintf("; cell [%d] line %d has removed it: run the cell that declares it again", cell.count, call.Line)
		}
		if cell.succeeded && gocell.Declares(cell.code, key) {
			declared, removed = true, ""
		}
	}
	return removed
}
