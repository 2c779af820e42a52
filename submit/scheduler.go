package submit

import "context"

// Scheduler hands jobs to a batch system. All methods may be called at once from several goroutines, and none blocks
// longer than the batch system's own commands, which have a time limit.
type Scheduler interface {
	// Submit queues the job whose script lies in spec.RunDir and returns at once. It must not be repeated on an error
	// that is not clear: the job may be queued.
	Submit(ctx context.Context, spec JobSpec) (Job, error)
	// Status asks how the job fares. It may be repeated, but not more often than about once a second. A job that the
	// batch system has forgotten is judged by the files in its run directory.
	Status(ctx context.Context, job Job) (Status, error)
	// Cancel ends the job. It may be repeated; cancelling a job that has ended is no error.
	Cancel(ctx context.Context, job Job) error
}
