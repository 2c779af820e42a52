package export

import (
	"slices"

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
