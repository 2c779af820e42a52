package job

import (
	"errors"
	"fmt"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// state is what a Machine waits for.
type state string

const (
	beginning  state = "beginning"
	finding    state = "finding another job"
	starting   state = "recording the start"
	settingUp  state = "running the setup"
	refusing   state = "asking why no cell can run"
	checking   state = "checking a cell"
	running    state = "running a cell"
	asking     state = "asking how the scheduler sees the end"
	looking    state = "looking for the ranks' records"
	marking    state = "marking a cell"
	dying      state = "recording a death"
	restarting state = "recording a restart"
	stopping   state = "asking before it is queued again"
	queueing   state = "queueing the job again"
	over       state = "over"
)

// Machine decides what a job does next: a state, and a table of what follows from an event in it.
// It does nothing by itself and knows no clock, so a test can tell it any story.
type Machine struct {
	Plan
	state    state
	start    int
	restarts int
	cell     int
	ended    Ended
	death    string // The last death of a training run, in words.
	looks    int
	// stop is set once the programs must stop, and terminated once the scheduler wants the start to
	// end.
	stop, terminated bool
	waiting          bool // For another job of the run.
	asked            bool // Whether the scheduler has not answered once.
}

// NewMachine returns the machine of a start that has not begun.
func NewMachine(p Plan) *Machine { return &Machine{Plan: p, state: beginning} }

// Next returns what follows from an event.
func (m *Machine) Next(e Event) []Effect {
	if s, ok := e.(Stop); ok {
		return m.stopped(s)
	}
	switch m.state {
	case beginning:
		return m.to(finding, Effect{Kind: FindOther})
	case finding:
		return m.found(e.(Other))
	case starting:
		return m.started(e.(Started))
	case settingUp:
		return m.setUp(e.(SetUp))
	case refusing:
		return m.refused(e.(Word))
	case checking:
		return m.checked(e.(Checked))
	case running:
		return m.cellEnded(e.(Ended))
	case asking:
		return m.answered(e.(Word))
	case looking:
		return m.looked(e.(Ended))
	case marking:
		return m.marked(e.(Marked))
	case dying:
		return m.died(e.(Died))
	case restarting:
		return m.restarted(e.(Started))
	case stopping:
		return m.maySave(e.(Word))
	case queueing:
		return m.requeued(e.(Requeued))
	}
	return nil
}

// to changes the state and returns the effects.
func (m *Machine) to(s state, effects ...Effect) []Effect {
	m.state = s
	return effects
}

func say(format string, args ...any) Effect {
	return Effect{Kind: Say, Text: fmt.Sprintf(format, args...)}
}

// note is say for the log of a scheduler's job.
func (m *Machine) note(format string, args ...any) []Effect {
	if m.By == "" {
		return nil
	}
	return []Effect{say(format, args...)}
}

// finish ends the job with a code, and records that, for clusters without accounting.
func (m *Machine) finish(code int, says ...Effect) []Effect {
	says = append(says, m.note("job %s ends with exit code %d", m.Job, code)...)
	return m.to(over, append(says, Effect{Kind: End, Code: code, Record: m.By != ""})...)
}

// leave ends this start without a record: the job goes on elsewhere, or the scheduler knows better
// how it ends.
func (m *Machine) leave(code int, why Effect) []Effect {
	return m.to(over, why, Effect{Kind: End, Code: code})
}

// stopped handles a signal. Only the first is passed on; a SIGTERM may follow.
func (m *Machine) stopped(s Stop) (effects []Effect) {
	if !m.stop {
		if s.Near {
			effects = m.note("SIGUSR1: the time limit is near")
		} else {
			effects = m.note("SIGTERM: %s ends this start of the job", m.By)
		}
		if m.state == running && !m.Cells[m.cell].Once {
			effects = append(effects, Effect{Kind: Tell})
		}
	}
	m.stop = true
	if !s.Near && !m.terminated && m.By != "" {
		m.terminated = true
		effects = append(effects, Effect{Kind: Note})
	}
	return effects
}

// found waits until no other job of the run is ending, and leaves the run alone if one runs.
func (m *Machine) found(o Other) []Effect {
	switch {
	case o.ID == "":
		return m.to(starting, Effect{Kind: AddStart})
	case o.Ending && !m.waiting:
		m.waiting = true
		return []Effect{say("waiting for job %s, whose last processes are ending", o.ID), {Kind: FindOther, Later: true}}
	case o.Ending:
		return []Effect{{Kind: FindOther, Later: true}}
	case o.Cluster != "":
		return m.leave(1, say("job %s of the cluster %s may still run in this run directory, and that cluster cannot be asked from here: job %s leaves it alone; submit status on a login node of %[2]s records its end", o.ID, o.Cluster, m.Job))
	}
	return m.leave(1, say("job %s runs in this run directory: job %s leaves it alone", o.ID, m.Job))
}

func (m *Machine) started(s Started) []Effect {
	if s.Err != nil {
		return m.finish(rundir.NoRecordCode, say("%v", s.Err))
	}
	m.start, m.restarts = s.Number, s.Restarts
	hello := m.note("job %s, start %d, on %s", m.Job, m.start, m.Nodes)
	switch {
	case m.MaxRestarts > 0 && m.restarts > m.MaxRestarts:
		return m.finish(rundir.RequeueCode, append(hello, say("%s", m.limit()), say("resume it with: %s", m.Resume))...)
	case m.Refusal != "":
		return m.finish(1, append(hello, say("%s", m.Refusal))...)
	}
	return m.to(settingUp, append(hello, Effect{Kind: Setup})...)
}

// setUp begins the first cell, unless the setup has failed.
func (m *Machine) setUp(s SetUp) []Effect {
	if s.Code == 0 && s.Err == nil {
		return m.next(0)
	}
	if m.ended = (Ended{Code: s.Code, Err: s.Err}); s.Err != nil || s.Code == rundir.RequeueCode {
		m.ended.Code = 1 // Only ranks can have saved.
	}
	return m.to(refusing, Effect{Kind: Ask})
}

// refused ends a job whose setup has failed. If the scheduler is ending it, that may be why.
func (m *Machine) refused(w Word) []Effect {
	switch ending, undecided := m.ending(w); {
	case undecided:
		return []Effect{{Kind: Ask, Later: true}}
	case ending:
		return m.leave(m.ended.Code, say("%s is ending this start of the job", m.By))
	case m.ended.Err != nil:
		return m.finish(1, say("%v", m.ended.Err))
	}
	return m.finish(m.ended.Code, say("the setup has failed"))
}

func (m *Machine) limit() string {
	return fmt.Sprintf("restarts so far: %d, and --max-restarts=%d", m.restarts, m.MaxRestarts)
}

// next goes on with a cell, or ends the job after the last.
func (m *Machine) next(cell int) []Effect {
	if m.cell = cell; cell == len(m.Cells) {
		return m.finish(0)
	}
	return m.to(checking, Effect{Kind: Check, Cell: cell})
}

// superseded ends this start: the cells and the place in the queue now belong to the next one.
func (m *Machine) superseded() []Effect {
	return m.leave(rundir.RequeueCode, say("the run has been started again: start %d ends", m.start))
}

func (m *Machine) checked(c Checked) []Effect {
	switch {
	case c.Superseded:
		return m.superseded()
	case c.Finished:
		return append([]Effect{say("cell %s succeeded in an earlier start", m.Cells[m.cell].Name)}, m.next(m.cell+1)...)
	case m.stop:
		m.ended = Ended{NotBegun: true}
		return m.to(stopping, Effect{Kind: Ask})
	}
	return m.to(running, append(m.note("%s", m.Title(m.Cells[m.cell])), Effect{Kind: Launch, Cell: m.cell})...)
}

// cellEnded judges a cell's end, and asks the scheduler before it believes it: if a node was lost,
// the launcher's exit code may be 0. A cell that was not begun before the job had to stop, or for
// which there was no place, can begin in another start.
func (m *Machine) cellEnded(e Ended) []Effect {
	m.ended, m.asked, m.looks = e, false, 0
	notBegun := e.Err == nil && e.NotBegun && e.Code != 0 && m.stop
	hasSaved := e.Err == nil && e.Saved && e.Code == 0 && !m.Cells[m.cell].Once
	if notBegun || hasSaved || errors.Is(e.Err, ErrBlocked) {
		return m.to(stopping, Effect{Kind: Ask})
	}
	return m.to(asking, Effect{Kind: Ask})
}

// ending reports whether the scheduler is ending this start. Its own kill may end the command that
// asks it before this process, so no answer after SIGTERM means that too; the signal may come a
// moment after the launcher's end. undecided is set if the question must be asked again.
func (m *Machine) ending(w Word) (ending, undecided bool) {
	switch {
	case w.State == completing:
		return true, false
	case w.State != "":
		return false, false
	case m.terminated:
		return true, false
	}
	undecided = !m.asked
	m.asked = true
	return false, undecided
}

// completing is the scheduler's state of a job that it is ending, and timeLimit its reason for one
// that has reached its time limit, in the words of SLURM.
const (
	completing = "COMPLETING"
	timeLimit  = "TimeLimit"
)

func (m *Machine) answered(w Word) []Effect {
	ending, undecided := m.ending(w)
	code, name := m.ended.Code, m.Cells[m.cell].Name
	switch {
	case w.Superseded:
		return m.superseded()
	case undecided:
		return []Effect{{Kind: Ask, Later: true}}
	case ending && code == 0 && m.ended.All:
		return append(m.mark(), m.leave(1, say("%s is ending this start of the job", m.By))...)
	case ending:
		return m.leave(max(code, 1), say("%s is ending this start of the job", m.By))
	case m.ended.Err != nil:
		return m.finish(1, say("cell %s: %v", name, m.ended.Err))
	case code == 0 && m.ended.All:
		return m.to(marking, m.mark()...)
	case code == 0 && m.looks < maxLooks:
		m.looks++
		return m.to(looking, Effect{Kind: Look, Cell: m.cell, Later: true})
	case code == 0:
		return m.finish(rundir.NoRecordCode, say("cell %s: its launcher says that all went well, but rank %d has not recorded that it ended well", name, m.ended.Silent))
	case m.Cells[m.cell].Once || m.stop:
		return m.finish(code)
	}
	return m.to(dying, Effect{Kind: AddDeath, Cell: m.cell})
}

// mark marks the cell. Its programs may have stopped because they were told to, and not be done.
func (m *Machine) mark() (effects []Effect) {
	if m.ended.Told {
		effects = append(effects, say("cell %s was told to stop, and ended with exit code 0: it counts as done (a program that has saved, to go on in another start, ends with exit code %d)", m.Cells[m.cell].Name, rundir.RequeueCode))
	}
	return append(effects, Effect{Kind: Mark, Cell: m.cell})
}

// maxLooks is how often a job looks for what its ranks have recorded: another node's files may
// arrive late.
const maxLooks = 10

// looked asks the scheduler again once there is more to see of a cell's end.
func (m *Machine) looked(e Ended) []Effect {
	m.ended = e
	return m.to(asking, Effect{Kind: Ask})
}

// marked goes on with the next cell. A success that is not recorded would run again, for ever: it
// ends the job, with its own exit code.
func (m *Machine) marked(e Marked) []Effect {
	if e.Err != nil {
		return m.finish(rundir.NoRecordCode, say("cell %s has succeeded, but that cannot be recorded: %v", m.Cells[m.cell].Name, e.Err))
	}
	return m.next(m.cell + 1)
}

// died starts a training run again whose rank died, unless the start before died at the same
// update.
func (m *Machine) died(d Died) []Effect {
	switch {
	case d.Err != nil:
		return m.finish(m.ended.Code, say("%v", d.Err))
	case !d.Trains:
		return m.finish(m.ended.Code)
	case d.Repeats:
		return m.finish(m.ended.Code, say("%s", submit.DescribeRepeat(d.Death)))
	case m.restarts >= m.MaxRestarts:
		return m.finish(m.ended.Code, say("%s; %s", submit.DescribeDeath(d.Death), m.limit()), say("resume it with: %s", m.Resume))
	}
	m.death = submit.DescribeDeath(d.Death)
	return m.to(restarting, Effect{Kind: AddStart})
}

// restarted goes on with the cell whose rank died.
func (m *Machine) restarted(s Started) []Effect {
	if s.Err != nil {
		return m.finish(m.ended.Code, say("%s with exit code %d, and no other start can be recorded: %v", m.death, m.ended.Code, s.Err))
	}
	m.start, m.restarts = s.Number, max(s.Restarts, m.restarts+1)
	again := say("%s with exit code %d; start %d resumes from its newest checkpoint", m.death, m.ended.Code, m.start)
	return append([]Effect{again}, m.next(m.cell)...)
}

// maySave queues the job again once the ranks have saved, if it may.
func (m *Machine) maySave(w Word) []Effect {
	switch {
	case w.Superseded:
		return m.superseded()
	case m.By == "":
		return m.finish(rundir.RequeueCode)
	case w.State == completing && w.Reason != timeLimit:
		return m.leave(rundir.RequeueCode, say("%s; %s is ending this start of the job", m.saved(), m.By))
	case m.MaxRestarts == 0:
		return m.notQueued("--max-restarts=0")
	case m.restarts >= m.MaxRestarts:
		return m.notQueued(m.limit())
	}
	return m.to(queueing, Effect{Kind: Requeue})
}

// saved says why another start can go on.
func (m *Machine) saved() string {
	switch {
	case errors.Is(m.ended.Err, ErrBlocked):
		return fmt.Sprintf("cell %s could not begin, because other processes hold the job's nodes", m.Cells[m.cell].Name)
	case m.ended.NotBegun:
		return fmt.Sprintf("cell %s has not begun", m.Cells[m.cell].Name)
	}
	return "the ranks have saved"
}

func (m *Machine) requeued(r Requeued) []Effect {
	if r.Err != nil {
		return m.notQueued(r.Err.Error())
	}
	return m.leave(rundir.RequeueCode, say("%s; job %s is queued again", m.saved(), m.Job))
}

func (m *Machine) notQueued(why string) []Effect {
	return m.finish(rundir.RequeueCode, say("%s, but the job is not queued again: %s", m.saved(), why), say("resume it with: %s", m.Resume))
}
