package submit

import "gonbatch/internal/rundir"

// State is a job's state, in terms common to all schedulers. The zero value is unknown.
type State string

// The states of a job.
const (
	// Unknown is a state that this version does not know.
	Unknown State = ""
	// Pending jobs are waiting for a start or a restart.
	Pending State = "pending"
	// Running jobs are running, or just ending.
	Running State = "running"
	// Suspended jobs are paused and will continue.
	Suspended State = "suspended"
	// Completed jobs succeeded.
	Completed State = "completed"
	// Failed jobs ended because a program failed.
	Failed State = "failed"
	// Stopped jobs were told to stop and have saved: they can be resumed.
	Stopped State = "stopped"
	// Cancelled jobs were ended by a user.
	Cancelled State = "cancelled"
	// TimedOut jobs reached their time limit.
	TimedOut State = "timed out"
	// OutOfMemory jobs used more memory than they had.
	OutOfMemory State = "out of memory"
	// NodeFailed jobs lost a node.
	NodeFailed State = "node failed"
	// Preempted jobs gave way to another job.
	Preempted State = "preempted"
	// Lost jobs are no longer known to the scheduler, and left no record of their end.
	Lost State = "lost"
)

// String returns the state's name.
func (s State) String() string {
	if s == Unknown {
		return "unknown"
	}
	return string(s)
}

// Ended reports whether a job in this state has ended. A preempted or node-failed job may still be
// requeued.
func (s State) Ended() bool {
	switch s {
	case Unknown, Pending, Running, Suspended:
		return false
	}
	return true
}

// OfCode returns the state of a job whose programs ended with an exit code.
func OfCode(code int) State {
	switch code {
	case 0:
		return Completed
	case rundir.RequeueCode:
		return Stopped
	}
	return Failed
}

// requeues reports whether schedulers may restart a job in this ended state.
func (s State) requeues() bool { return s == NodeFailed || s == Preempted }
