package job

import "gonbatch/internal/rundir"

// Plan is what a job has to do.
type Plan struct {
	// By is the scheduler's name, Job the job's id in it, and Nodes where this start runs. Without
	// a scheduler, nobody ends a start or queues the job again, and the job says only what somebody
	// in front of it has to know.
	By, Job, Nodes string
	Cells          []rundir.Cell
	// Title describes how a cell runs, for the log.
	Title func(rundir.Cell) string
	// MaxRestarts is how often the job may start again.
	MaxRestarts int
	// Resume is the command that resumes the run.
	Resume string
	// Refusal is why no cell can run; "" if there is no reason.
	Refusal string
}

// An Event is something that has happened: a signal, or the answer to an Effect.
type Event any

// The events. Begin comes first, and Stop at any time. The others answer the effect before them.
type (
	// Begin begins this start of the job.
	Begin struct{}
	// Stop is a signal: the programs must save and stop, because the time limit is near, or because
	// the scheduler wants the start to end.
	Stop struct{ Near bool }
	// Other is another job of the run that has not ended, or is ending; "" if there is none.
	// Cluster is set if it may have ended, but its cluster cannot be asked.
	Other struct {
		ID      string
		Ending  bool
		Cluster string
	}
	// Started is the number of the start that was recorded, and how often the job has started
	// again.
	Started struct {
		Number, Restarts int
		Err              error
	}
	// SetUp is the exit code of the job's setup. Err is why there is none.
	SetUp struct {
		Code int
		Err  error
	}
	// Checked says whether the run has a newer start, and whether the cell has succeeded.
	Checked struct{ Superseded, Finished bool }
	// Ended says how a cell has ended: the launcher's exit code, or that of the rank that failed
	// first, whether a rank has saved, and whether each rank says that it has ended well. NotBegun
	// is set if no rank has begun.
	Ended struct {
		Code                 int
		Saved, All, NotBegun bool
		// Told is set if a rank had been told to stop.
		Told bool
		// Silent is the first rank that does not say so.
		Silent int
		Err    error
	}
	// Word is the scheduler's word on this job; "" if it doesn't answer. Superseded is set if the
	// run has a newer start.
	Word struct {
		State, Reason string
		Superseded    bool
	}
	// Marked says whether the cell's success is recorded.
	Marked struct{ Err error }
	// Died says where a training run died. It is no training run, or had not begun, if Trains is
	// not set.
	Died struct {
		rundir.Death
		Trains, Repeats bool
		Err             error
	}
	// Requeued says whether the scheduler has queued the job again.
	Requeued struct{ Err error }
)

// Kind is what an Effect does.
type Kind string

// The effects. Each is answered by the event in its comment; those without go on by themselves.
const (
	Say       Kind = "say"        // Text, in the job's log
	Tell      Kind = "tell"       // the ranks to save and stop
	Note      Kind = "note"       // the scheduler's word in the run directory
	FindOther Kind = "find other" // Other, after a while if Later is set
	AddStart  Kind = "add start"  // Started
	Setup     Kind = "setup"      // SetUp
	Check     Kind = "check"      // Checked
	Launch    Kind = "launch"     // Ended
	Ask       Kind = "ask"        // Word, after a while if Later is set
	Look      Kind = "look"       // Ended, after a while: what the ranks have recorded may arrive late
	Mark      Kind = "mark"       // Marked
	AddDeath  Kind = "add death"  // Died
	Requeue   Kind = "requeue"    // Requeued
	End       Kind = "end"        // none: the job's process ends with Code; the end is recorded if Record is set
)

// Effect is something to do.
type Effect struct {
	Kind   Kind
	Cell   int
	Text   string
	Code   int
	Later  bool
	Record bool
}
