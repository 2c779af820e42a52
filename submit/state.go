package submit

import "gonbatch/internal/rundir"

// State is a job's state in words that are the same for all schedulers. The zero value is unknown.
type State string

// The states of a job.
const (
	// Unknown is a state that this version does not know.
	Unknown State = ""
	// Pending jobs wait to start, for the first time or again.
	Pending State = "pending"
	// Running jobs run, or are just ending.
	Running State = "running"
	// Suspended jobs were stopped and will go on.
	Suspended State = "suspended"
	// Completed jobs ended well.
	Completed State = "completed"
	// Failed jobs ended with a program's failure.
	Failed State = "failed"
	// Stopped jobs were told to stop and have saved: they can be resumed.
	Stopped State = "stopped"
	// Cancelled jobs were ended by a person.
	Cancelled State = "cancelled"
	// TimedOut jobs reached their time limit.
	TimedOut State = "timed out"
	// OutOfMemory jobs used more memory than they were given.
	OutOfMemory State = "out of memory"
	// NodeFailed jobs lost a node.
	NodeFailed State = "node failed"
	// Preempted jobs gave way to another.
	Preempted State = "preempted"
	// Lost jobs are no longer known to the scheduler, and left no record of their end.
	Lost State = "lost"
)

// String is the state in words.
func (s State) String() string {
	if s == Unknown {
		return "unknown"
	}
	return string(s)
}

// Ended reports whether a job in this state has ended. A preempted or node-failed job may yet be
// requeued.
func (s State) Ended() bool {
	switch s {
	case Unknown, Pending, Running, Suspended:
		return false
	}
	return true
}

// OfCode is the state of a job whose programs ended with an exit code.
func OfCode(code int) State {
	switch code {
	case 0:
		return Completed
	case rundir.RequeueCode:
		return Stopped
	}
	return Failed
}

// requeues reports whether schedulers may start a job in this ended state once more.
func (s State) requeues() bool { return s == NodeFailed || s == Preempted }
