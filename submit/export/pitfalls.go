package export

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/export/pitfall"
)

// checkFrontEnd refuses programs that would wait forever for an answer from a notebook's front end.
func (e *exporter) checkFrontEnd() error {
	for _, program := range e.module.Programs() {
		if call, at := pitfall.WaitingCall(string(e.module.Files[program.Source()])); call != "" {
			cell := e.cells[program.Number-1]
			if i := slices.IndexFunc(e.cells, func(c *nbcell.Cell) bool { return c.File == at.Filename }); i >= 0 {
				cell = e.cells[i]
			}
			return cell.Errorf(at.Line, "%s waits for the notebook's front end, and a job has none; tag the cells that use it notebook-only", call)
		}
	}
	return nil
}

// noteDeadEnds notes the mains after which no other cell can run.
func (e *exporter) noteDeadEnds() {
	for i, made := range e.module.Cells {
		end := e.deadEnds[made.Name]
		if end == nil || i == len(e.module.Cells)-1 {
			continue
		}
		message := fmt.Sprintf("%s, so the cells below cannot run: %s", end.How, strings.Join(e.module.CellNames()[i+1:], ", "))
		e.session.notes = append(e.session.notes, nbcell.Note{Ref: e.cells[made.Number-1].Ref, Line: end.Line, Message: message})
	}
}
