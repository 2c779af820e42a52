// Package job runs the cells of a job to their end: it is what a batch script starts on the job's
// first node, as "submit job RUNDIR".
//
// A Machine decides what to do next, from what has happened. A driver does it, and tells the
// machine how that went. It reaches the ranks through a Launcher, and asks a Scheduler about its
// own job. All that must outlive this process is in the run directory, so that another start can go
// on.
//
//	driver                Machine
//	  signal, end of a cell  ->  state
//	  launch, mark, ask ...  <-  effects
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Launcher starts ranks.
type Launcher interface {
	// Launch starts the ranks of a cell in a start of the run.
	Launch(cell rundir.Cell, start int) (Ranks, error)
}

// Ranks are the ranks of a cell.
type Ranks interface {
	// Wait waits until all have ended and returns the launcher's exit code, and ErrBlocked if it
	// has ended the launcher because there was no place for them.
	Wait() (int, error)
	// Tell tells them to save and stop, again and again until they have ended: a program that is
	// just starting may miss the first signal.
	Tell()
}

// ErrBlocked is the error of ranks that other processes on the job's nodes have kept from beginning
// for too long.
var ErrBlocked = errors.New("there is no place on the job's nodes")

// Scheduler is what a job asks the scheduler that has started it.
type Scheduler interface {
	// Name is the scheduler's name, Job the job's id, and Nodes the nodes that it has.
	Name() string
	Job() string
	Nodes() string
	// Line is the line that records a start of the run.
	Line(now time.Time) string
	// Restarts is how often the scheduler has started this job again.
	Restarts() int
	// Other finds another job of the run that runs, or is just ending.
	Other(dir rundir.Dir) Other
	// Word is the scheduler's word on this job.
	Word() Word
	// Requeue queues this job again.
	Requeue() error
}

// Job is one start of a job.
type Job struct {
	Spec      submit.JobSpec
	Launcher  Launcher
	Scheduler Scheduler
	// Refusal is why no cell can run; "" if there is no reason.
	Refusal string
	// Setup, if set, is run before the first cell, and returns its exit code.
	Setup func() (code int, err error)
	// Log gets the messages.
	Log io.Writer
	Now func() time.Time
	// Signals are the signals to the job.
	Signals <-chan Stop
	// Restarts, if set, is called before a cell starts again in place.
	Restarts func()

	machine *Machine
	start   int
	ranks   Ranks
	ended   chan finished
	notes   sync.WaitGroup
	held    *rundir.Lock
	// last is how the last cell ended, and err why the job could not go on.
	last finished
	err  error
}

// finished is the end of a cell, with what its ranks have recorded.
type finished struct {
	cell string
	Ended
	ends map[int]rundir.End
}

// Run runs the job to the end of this start, and returns its exit code.
func (j *Job) Run() int {
	j.ended = make(chan finished, 1)
	j.machine = NewMachine(Plan{
		By: j.Scheduler.Name(), Job: j.Scheduler.Job(), Nodes: j.Scheduler.Nodes(), Cells: j.Spec.Cells, Title: j.title,
		MaxRestarts: j.Spec.MaxRestarts, Resume: submit.ResumeCommand(j.Spec.RunDir), Refusal: j.Refusal,
	})
	var event Event = Begin{}
	for {
		event = j.next(event)
		for pending := true; pending; {
			select {
			case s := <-j.Signals:
				j.all(j.machine.Next(s))
			default:
				pending = false
			}
		}
		effects := j.machine.Next(event)
		if n := len(effects) - 1; n >= 0 && effects[n].Kind == End {
			j.all(effects[:n])
			return j.end(effects[n])
		}
		event = j.all(effects)
	}
}

// next returns the event, or waits for a signal or the end of the cell if there is none.
func (j *Job) next(event Event) Event {
	for event == nil {
		select {
		case s := <-j.Signals:
			j.all(j.machine.Next(s))
		case j.last = <-j.ended:
			_ = j.keep(j.last.Err) // It goes on in the event.
			event = j.last.Ended
		}
	}
	return event
}

// all does everything in a list, and returns the answer to the one question in it.
func (j *Job) all(effects []Effect) (answer Event) {
	for _, e := range effects {
		if a := j.do(e); a != nil {
			answer = a
		}
	}
	return answer
}

// Cell returns the name of the cell that ran last; "" if none did.
func (j *Job) Cell() string { return j.last.cell }

// Ends returns what the ranks of the cell that ran last have recorded.
func (j *Job) Ends() map[int]rundir.End { return j.last.ends }

// Saved reports whether the cell that ran last has saved because it was told to stop.
func (j *Job) Saved() bool { return j.last.Saved }

// Err returns why the job could not go on, if that is no failure of a program.
func (j *Job) Err() error { return j.err }

// later is the time before a question is asked again.
const later = time.Second

// signalTime is how long after the scheduler's command this process may get the signal that has
// ended both.
const signalTime = 200 * time.Millisecond

// do does something and returns the answer; nil if there is none, or if it comes later.
func (j *Job) do(e Effect) Event {
	if e.Later {
		time.Sleep(later)
	}
	dir := j.Spec.RunDir
	switch e.Kind {
	case Say:
		j.say(e.Text)
	case Tell:
		if j.ranks != nil {
			j.ranks.Tell()
		}
	case Note:
		j.notes.Go(j.note)
	case FindOther:
		j.lock()
		other := j.Scheduler.Other(dir)
		if other.ID != "" {
			j.unlock()
		}
		return other
	case AddStart:
		defer j.unlock()
		return j.addStart()
	case Setup:
		return j.setup()
	case Check:
		cell := j.Spec.Cells[e.Cell]
		return Checked{Superseded: j.superseded(), Finished: rundir.IsFinished(dir, cell.Name) || j.endedBefore(cell)}
	case Launch:
		j.launch(j.Spec.Cells[e.Cell])
	case Look:
		rundir.Refresh(dir.EndsOf(j.start, j.Spec.Cells[e.Cell].Name))
		j.last = j.judge(j.Spec.Cells[e.Cell], j.start, j.last.Code, nil)
		_ = j.keep(j.last.Err) // It goes on in the event.
		return j.last.Ended
	case Ask:
		w := j.Scheduler.Word()
		if w.State == "" {
			time.Sleep(signalTime)
		}
		w.Superseded = j.superseded()
		return w
	case Mark:
		return Marked{j.keep(rundir.MarkFinished(dir, j.Spec.Cells[e.Cell].Name, j.start))}
	case AddDeath:
		return j.addDeath(j.Spec.Cells[e.Cell])
	case Requeue:
		return Requeued{j.Scheduler.Requeue()}
	}
	return nil
}

// lockLimit is how long a job waits for another one that begins at the same time: longer than it
// takes to notice that the other's machine is dead.
const lockLimit = 2 * time.Minute

// lock keeps other jobs of the run from beginning at the same time. A job that cannot write its
// lock cannot record its start either, which ends it.
func (j *Job) lock() {
	if j.held != nil || j.Scheduler.Job() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	j.held, _ = rundir.AcquireLock(ctx, j.Spec.RunDir.StartLock(), func(p rundir.Process) {
		j.say(fmt.Sprintf("waiting for another job of the run, which is beginning on %s", p.Host))
	})
}

func (j *Job) unlock() {
	if j.held != nil {
		_ = j.held.Release() // Its file is taken over once this process has ended.
	}
	j.held = nil
}

// keep remembers why the job cannot go on.
func (j *Job) keep(err error) error {
	if err != nil {
		j.err = err
	}
	return err
}

// prefix begins each line of a job in its log, and CellBegins the one before a cell runs.
const (
	prefix     = "gonbatch: "
	CellBegins = prefix + cellWord
	cellWord   = "cell "
)

func (j *Job) say(text string) { fmt.Fprintln(j.Log, prefix+text) }

// title describes how a cell runs, for the log.
func (j *Job) title(cell rundir.Cell) string {
	where := "on " + plural.Of(j.Spec.Tasks(), "rank")
	if cell.Once {
		where = "once, on the first node"
	}
	return fmt.Sprintf("%s%s %s: %s", cellWord, cell.Name, where, shellescape.QuoteCommand(j.Spec.Program(cell)))
}

// superseded reports whether the run has been started again. This start may still run on a node
// that the scheduler has lost.
func (j *Job) superseded() bool {
	return rundir.Env{Dir: j.Spec.RunDir, Start: j.start}.Superseded()
}

// note records the scheduler's word as it ends this start, for clusters without accounting.
func (j *Job) note() {
	w := j.Scheduler.Word()
	if !j.superseded() {
		_ = rundir.Ending{JobID: j.Scheduler.Job(), State: w.State, Reason: w.Reason}.Write(j.Spec.RunDir) // It only helps to explain.
	}
}

// end records the end of the job.
func (j *Job) end(e Effect) int {
	j.notes.Wait()
	if e.Record && !j.superseded() {
		if err := rundir.WriteExitStatus(j.Spec.RunDir, j.Scheduler.Job(), e.Code); err != nil {
			j.say(fmt.Sprintf("the end of the job cannot be recorded: %v", err))
		}
	}
	return e.Code
}

// addStart records a start and prepares its files.
func (j *Job) addStart() (s Started) {
	dir, id := j.Spec.RunDir, j.Scheduler.Job()
	if j.start > 0 && j.Restarts != nil {
		j.Restarts()
	}
	n, err := rundir.AddStart(dir, j.Scheduler.Line(j.Now()))
	if err != nil {
		return Started{Err: j.keep(err)}
	}
	j.start, s.Number = n, n
	starts, err := rundir.ReadStarts(dir)
	s.Err = j.keep(errors.Join(err, rundir.ForgetEnd(dir)))
	_ = rundir.NoteLogs(dir) // It only helps to explain.
	if id == "" {
		return s
	}
	s.Restarts = -1
	for _, one := range starts {
		if one.ID == id {
			s.Restarts++
		}
	}
	s.Restarts = max(s.Restarts, j.Scheduler.Restarts())
	return s
}

// endedBefore reports whether all ranks of a cell have recorded in the start before, of the same
// job, that they ended well. That start was lost before it could mark the cell.
func (j *Job) endedBefore(cell rundir.Cell) bool {
	starts, err := rundir.ReadStarts(j.Spec.RunDir)
	before, id := j.start-1, j.Scheduler.Job()
	if err != nil || id == "" || before < 1 || before > len(starts) || starts[before-1].ID != id {
		return false
	}
	return rundir.HaveSucceeded(j.Spec.RunDir, before, cell.Name, j.Spec.TasksOf(cell)) && rundir.MarkFinished(j.Spec.RunDir, cell.Name, before) == nil
}

// setup runs the setup.
func (j *Job) setup() (s SetUp) {
	if j.Setup != nil {
		s.Code, s.Err = j.Setup()
	}
	return s
}

// addDeath records the death of a training run.
func (j *Job) addDeath(cell rundir.Cell) Died {
	dir := j.Spec.RunDir
	d := Died{Death: rundir.Death{Start: j.start, Cell: cell.Name, Update: rundir.ReadProgress(dir)}}
	if d.Trains = d.Update > 0 || rundir.HasCheckpoints(dir, cell.Name); !d.Trains {
		return d
	}
	_, last, err := rundir.LastDeaths(dir)
	if err != nil {
		d.Err = err
		return d
	}
	d.Repeats = d.Death.Repeats(last)
	d.Err = rundir.AddDeath(dir, d.Death)
	return d
}

// launch starts the ranks of a cell. Their end comes as an event.
func (j *Job) launch(cell rundir.Cell) {
	dir := j.Spec.RunDir
	j.ranks = nil
	err := rundir.ClearProgress(dir)
	if err == nil {
		if err = j.Spec.CheckDir(cell); err != nil {
			_ = rundir.AppendLog(dir.RankLog(0), fmt.Sprintf("gonbatch: cell %s: %v", cell.Name, err)) // The job says so too.
		}
	}
	if err == nil {
		j.ranks, err = j.Launcher.Launch(cell, j.start)
	}
	if err != nil {
		j.ended <- finished{cell: cell.Name, Ended: Ended{Err: err}}
		return
	}
	start, ranks := j.start, j.ranks
	go func() {
		code, err := ranks.Wait()
		j.ended <- j.judge(cell, start, code, err)
	}()
}

// judge says how a cell has ended, from the launcher's exit code and what the ranks have recorded.
func (j *Job) judge(cell rundir.Cell, start, code int, err error) finished {
	dir := j.Spec.RunDir
	ends, readErr := rundir.ReadEnds(dir, start, cell.Name)
	e := Ended{Code: code, All: true, NotBegun: !rundir.HasBegun(dir, start, cell.Name), Saved: os.Remove(dir.Stopped(fmt.Sprint(start))) == nil, Err: cmp.Or(err, readErr)}
	for rank := range j.Spec.TasksOf(cell) {
		if end, ok := ends[rank]; e.All && (!ok || end.Code != 0 && !end.Saved) {
			e.All, e.Silent = false, rank
		}
		e.Saved, e.Told = e.Saved || ends[rank].Saved, e.Told || ends[rank].Told
	}
	// A rank that was told to stop has failed because of another, perhaps one without a record.
	if first, ok := rundir.FirstFailed(ends); ok && (code == 0 && !e.Saved || code != 0 && !first.Told) {
		e.Code = first.Code
	}
	if e.All {
		e.Code = 0 // The launcher may have been killed since.
	}
	return finished{cell.Name, e, ends}
}
