package relay

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"gonbatch/kernel/build"
	"gonbatch/kernel/cell"
)

// resultFile is the file in CellDir with the value of the cell, written by package display.
const resultFile = "result.json"

// prepareValue makes the cell show the value of its last expression.
func (e *execution) prepareValue() {
	r := e.relay
	for _, name := range []string{resultFile, build.VoidFile} {
		_ = os.Remove(filepath.Join(r.opts.CellDir, name))
	}
	if e.prepared.Err != nil {
		return
	}
	e.prepared.Code, e.callee, _ = cell.ShowValue(e.prepared.Code, func(callee string) bool { return r.void[callee] })
}

// showValue publishes the value that the cell's program left, after all its output.
func (e *execution) showValue(publish bool) {
	r := e.relay
	if _, err := os.Stat(filepath.Join(r.opts.CellDir, build.VoidFile)); err == nil && e.callee != "" {
		r.void[e.callee] = true
	}
	text, err := os.ReadFile(filepath.Join(r.opts.CellDir, resultFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log(err)
	}
	if err != nil || !publish || !json.Valid(text) {
		return
	}
	r.publish(e.request, "execute_result", object{"execution_count": e.count, "data": json.RawMessage(text), "metadata": object{}})
}
