package executed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// Outcome describes how a job ended.
type Outcome struct {
	// Code is the job's exit code.
	Code int
	// Cell is the cell that ended the job; empty means the cell that ran last.
	Cell string
	// State is the state of a job that did not end by itself, such as "cancelled" or "timed out",
	// and Reason is why.
	State  string
	Reason string
	// Failure is the rank that failed first, if known.
	Failure *rundir.Failure
}

// ok reports whether the job succeeded.
func (o Outcome) ok() bool { return o.Code == 0 && o.State == "" }

// End notes how the job ended. If the job failed, the running cell gets an error; the cells after
// it have no outputs.
func (r *Recorder) End(o Outcome) {
	if !o.ok() && o.Cell != "" {
		_ = r.Begin(o.Cell) // If the notebook has no such cell, the one before gets the error.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.times.StartTime == nil {
		r.times.StartTime = &now
	}
	seconds, exception := now.Sub(*r.times.StartTime).Seconds(), !o.ok()
	r.times.EndTime, r.times.Duration, r.times.Exception = &now, &seconds, &exception
	r.dirty = true
	if o.ok() {
		r.finishCell()
		r.passCells(nil)
		r.notes.State = completed
		return
	}
	if o.Code == rundir.RequeueCode && o.State == "" { // The job can be resumed.
		r.notes.State = stopped
		return
	}
	r.notes.State, r.notes.Reason = failed, o.Reason
	if o.State != "" {
		r.notes.State = o.State
	}
	r.failCell(o)
}

// Settle notes the end of a job whose recorder was killed with it. It doesn't change a notebook
// that already has the end, or whose job neither began nor failed.
func Settle(dir rundir.Dir, now func() time.Time, o Outcome) error {
	if _, err := os.Stat(dir.Executed()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r, err := openRecorder(dir, now)
	if err != nil || r.notes.State != running && (r.notes.State != pending || o.Code == 0) {
		return err
	}
	r.mu.Lock()
	r.noteLoss()
	r.mu.Unlock()
	r.End(o)
	return r.Save()
}

// failCell adds an error to the running cell or, if there is none, to the next that would have run.
func (r *Recorder) failCell(o Outcome) {
	if r.cell == nil {
		r.beginNext()
	}
	c := r.cell
	if c == nil {
		return
	}
	data, err := json.Marshal(r.describe(c, o))
	if err == nil {
		c.tape.fail(data)
	}
	c.times.end(r.endTime(), failed)
	c.dirty = true
	r.running, r.cell, r.ended = "", nil, time.Time{}
}

// beginNext begins the job's first cell that has not succeeded.
func (r *Recorder) beginNext() {
	for _, c := range r.cells {
		for _, name := range c.notes.Cells {
			if !slices.Contains(c.notes.Done, name) {
				r.beginCell(name, c)
				return
			}
		}
	}
}

// describe returns the error output of a failed cell.
func (r *Recorder) describe(c *bookCell, o Outcome) failure {
	place := fmt.Sprintf("%s, cell %s", path.Base(r.times.InputPath), cmp.Or(c.notes.Alias, c.cell.Label()))
	if c.cell.ID != "" && c.notes.Alias == "" {
		place += fmt.Sprintf(" (id %s)", c.cell.ID)
	}
	f := failure{Type: "error", Name: "ExitError", Value: fmt.Sprintf("exit code %d", o.Code)}
	text := c.tape.lastText("stderr", tailLimit)
	if name, value := goError(text); name != "" {
		f.Name, f.Value = name, value
	}
	if o.State != "" {
		f.Name, f.Value = strings.ToUpper(o.State[:1])+o.State[1:], o.Reason
	}
	f.Traceback = []string{fmt.Sprintf("%s (%s) of job %s", place, r.running, r.notes.Run)}
	if o.Failure != nil {
		f.Value = strings.TrimSpace(o.Failure.Error)
		f.Traceback = append(f.Traceback, fmt.Sprintf("rank %d on %s: %s", o.Failure.Rank, o.Failure.Host, f.Value))
	}
	f.Traceback = append(f.Traceback, rundir.LastLines(text, traceLines)...)
	f.Traceback = append(f.Traceback, f.Name+": "+f.Value)
	return f
}

// traceLines is the number of stderr's last lines in a traceback.
const traceLines = 20

// goError finds the panic or fatal error of a Go program in its stderr.
func goError(text string) (name, value string) {
	for _, kind := range []string{"panic", "fatal error"} {
		if i := strings.LastIndex("\n"+text, "\n"+kind+": "); i >= 0 {
			line, _, _ := strings.Cut(text[i:], "\n")
			return kind, strings.TrimPrefix(line, kind+": ")
		}
	}
	return "", ""
}
