package submit

import "context"

// Scheduler hands jobs to a batch system. All methods may be called at once from several goroutines, and none blocks
// longer than the batch system's own commands, which have a time limit.
type Scheduler interface {
	// Submit queues the job whose script lies in spec.RunDir and returns as soon as the batch system has taken it: also if ctx ends
	// meanwhile, for a job that is queued must be known. It must not be repeated on an error that is not clear: the job may be queued.
	Submit(ctx context.Context, spec JobSpec) (Job, error)
	// Status asks how the job is doing. It may be repeated, but not more often than about once a second. A job that the
	// batch system has forgotten is judged by the files in its run directory. An Unanswerable error will not change by asking again.
	Status(ctx context.Context, job Job) (Status, error)
	// Cancel ends the job. It may be repeated; cancelling a job that has ended is no error.
	Cancel(ctx context.Context, job Job) error
}

// Unanswerable is the error of a question that will find no answer later either: the job is on another cluster, or the scheduler's
// commands are not here.
type Unanswerable struct{ Err error }

// Error is the cause's.
func (u Unanswerable) Error() string { return u.Err.Error() }

// Unwrap gives the cause.
func (u Unanswerable) Unwrap() error { return u.Err }
