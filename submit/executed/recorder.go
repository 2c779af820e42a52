package executed

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
)

// Recorder holds the executed notebook of a run, and writes it as it grows. Its methods may be
// called concurrently. Only one process at a time may have a run's Recorder.
type Recorder struct {
	dir rundir.Dir
	now func() time.Time
	log string // the log's name, for notes

	mu    sync.Mutex
	nb    *nbformat.Notebook
	cells []*bookCell
	times runTimes
	notes runNotes
	// running is the name of the job's running cell, and cell is its cell in the notebook; both are
	// unset between two cells of the job.
	running string
	cell    *bookCell
	// ended is when the running cell's output ended; zero until then.
	ended time.Time
	// shown are the rich outputs that may be replaced, by id.
	shown map[string]shown
	count int
	dirty bool

	// saving is held while the file is written.
	saving sync.Mutex
}

// shown is a rich output with an id.
type shown struct {
	cell *bookCell
	item *item
}

// openRecorder opens the executed notebook from Prepare or from an earlier start of the job.
func openRecorder(dir rundir.Dir, now func() time.Time) (*Recorder, error) {
	data, err := rundir.ReadNotebook(dir.Executed())
	if err != nil {
		return nil, fmt.Errorf("executed notebook: %w", err)
	}
	nb, err := nbformat.Parse(dir.Executed(), data)
	if err != nil {
		return nil, err
	}
	r := &Recorder{dir: dir, now: now, nb: nb, shown: map[string]shown{}}
	if r.log, err = filepath.Rel(dir.Path(), dir.RankLog(0)); err != nil {
		return nil, err
	}
	if _, err := nb.GetMetadata(papermillKey, &r.times); err != nil {
		return nil, err
	}
	if _, err := nb.GetMetadata(ownKey, &r.notes); err != nil {
		return nil, err
	}
	if r.cells, err = readCells(nb, dir.Executed()); err != nil {
		return nil, err
	}
	for _, c := range r.cells {
		r.count = max(r.count, c.count)
	}
	return r, nil
}

// Start notes that the job is running.
func (r *Recorder) Start(jobID, host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLoss()
	now := r.now()
	if r.times.StartTime == nil {
		r.times.StartTime = &now
	}
	r.times.EndTime, r.times.Duration, r.times.Exception = nil, nil, nil
	r.notes.JobID, r.notes.Host, r.notes.State, r.notes.Reason = jobID, host, running, ""
	r.notes.Starts++
	r.dirty = true
}

// Begin notes that a cell of the job begins, and that the one before has succeeded.
func (r *Recorder) Begin(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == r.running {
		r.ended = time.Time{}
		return nil
	}
	r.finishCell()
	for _, c := range r.cells {
		if slices.Contains(c.notes.Cells, name) {
			r.beginCell(name, c)
			return nil
		}
	}
	return fmt.Errorf("%s has no cell for %q", r.dir.Executed(), name)
}

// beginCell marks a cell as running, and the cells before it that run no program of their own as
// executed: their code is in the programs.
func (r *Recorder) beginCell(name string, cell *bookCell) {
	r.passCells(cell)
	if cell.count == 0 {
		r.count++
		cell.count = r.count
	}
	cell.times.begin(r.now())
	cell.dirty, r.dirty = true, true
	r.running, r.cell, r.ended = name, cell, time.Time{}
}

// passCells marks the cells before end that run no program of their own as executed; all if end is
// nil.
func (r *Recorder) passCells(end *bookCell) {
	for _, c := range r.cells {
		if c == end {
			return
		}
		if c.count > 0 || c.notes.LeftOut || len(c.notes.Cells) > 0 || strings.TrimSpace(c.cell.Source) == "" {
			continue
		}
		r.count++
		c.count, c.dirty, r.dirty = r.count, true, true
		c.times.end(r.now(), completed)
	}
}

// finishCell notes that the running cell has succeeded.
func (r *Recorder) finishCell() {
	if r.cell == nil {
		return
	}
	if r.cell.done(r.running) {
		r.cell.times.end(r.endTime(), completed)
	}
	r.dirty = true
	r.running, r.cell, r.ended = "", nil, time.Time{}
}

// endTime returns when the running cell ended.
func (r *Recorder) endTime() time.Time {
	if r.ended.IsZero() {
		return r.now()
	}
	return r.ended
}

// outputEnded notes the end of the running cell's output.
func (r *Recorder) outputEnded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = r.now()
}

// write adds text of the running cell.
func (r *Recorder) write(stream string, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cell != nil {
		r.cell.tape.write(stream, text)
		r.cell.dirty, r.dirty = true, true
	}
}

// show adds a rich output of the running cell, or replaces one.
func (r *Recorder) show(id string, output json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cell == nil {
		return
	}
	r.dirty = true
	if old, ok := r.shown[id]; ok && id != "" {
		old.cell.tape.replace(old.item, output)
		old.cell.dirty = true
		return
	}
	if it := r.cell.tape.show(output); it != nil && id != "" {
		r.shown[id] = shown{r.cell, it}
	}
	r.cell.dirty = true
}

// Save writes the notebook if it has changed.
func (r *Recorder) Save() error {
	r.saving.Lock()
	defer r.saving.Unlock()
	data, err := r.marshal()
	if data == nil || err != nil {
		return err
	}
	if err := rundir.WriteFileAtomic(r.dir.Executed(), data, 0o600); err != nil {
		r.mu.Lock()
		r.dirty = true // So that it is tried again.
		r.mu.Unlock()
		return err
	}
	return nil
}

// marshal returns the current notebook; nil if the file is up to date.
func (r *Recorder) marshal() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty {
		return nil, nil
	}
	r.dirty = false
	errs := []error{r.nb.SetMetadata(papermillKey, r.times), r.nb.SetMetadata(ownKey, r.notes)}
	for _, c := range r.cells {
		errs = append(errs, c.store(r.log))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r.nb.Marshal()
}
