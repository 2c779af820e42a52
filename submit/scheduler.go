package submit

import (
	"context"

	"gonbatch/internal/rundir"
)

// Scheduler runs jobs: a batch system, or this machine. All methods may be called at once from
// several goroutines, and none blocks longer than the batch system's own commands, which have a
// time limit. What only some schedulers have is in the interfaces below.
type Scheduler interface {
	// Name is the scheduler's name in manifests.
	Name() string
	// Platform is the XLA platform for the programs of a job that asks for none; "" lets each rank
	// find out.
	Platform(spec JobSpec) string
	// Validate says everything in spec that this scheduler cannot take, besides what
	// JobSpec.Validate refuses for all of them.
	Validate(spec JobSpec) error
	// Prepare decides what spec leaves to the scheduler, such as the kind of MPI, and refuses a job
	// that cannot run. It changes nothing. A preview may be made where no job can be queued.
	Prepare(ctx context.Context, spec JobSpec, preview bool) (JobSpec, error)
	// Submit hands over the job that is staged in spec.RunDir, and returns as soon as the scheduler
	// has taken it: also if ctx ends meanwhile, for a job that is queued must be known. It must not
	// be repeated on an error that is not clear: the job may be queued.
	Submit(ctx context.Context, spec JobSpec) (Job, error)
	// Status asks how the job is doing. It may be repeated, but not more often than about once a
	// second. A job that the scheduler has forgotten is judged by the files in its run directory.
	// An Unanswerable error will not change by asking again.
	Status(ctx context.Context, job Job) (Status, error)
	// Cancel ends the job. It may be repeated; cancelling a job that has ended is no error.
	Cancel(ctx context.Context, job Job) error
}

// Asker reports how a job is doing, as Scheduler.Status does.
type Asker interface {
	Status(ctx context.Context, job Job) (Status, error)
}

// Batch is a Scheduler that starts jobs by a batch script, spec.RunDir.Script(), which a person can
// read and queue too.
type Batch interface {
	Scheduler
	// Script is the batch script of a job that was prepared.
	Script(spec JobSpec) ([]byte, error)
	// QueueCommand is the command line that queues the script, for a person to type.
	QueueCommand(spec JobSpec) string
}

// Foreground is a Scheduler whose jobs run in the process that submits them: Submit only takes the
// job, for that process.
type Foreground interface {
	Scheduler
	// Run starts the programs of a job that was submitted, shows rank 0's log, and blocks until
	// they have ended. When ctx ends, they are told to save and stop. A job that did not end well
	// gives an error too, which is a *JobError unless something else than the job went wrong.
	Run(ctx context.Context, spec JobSpec) (Status, error)
}

// Surveyor is a Scheduler that can be asked about many jobs at once, and that knows jobs by their
// script: somebody may have queued one by hand.
type Surveyor interface {
	// Survey returns one, which asks once and gives answers of that age.
	Survey(ctx context.Context) Survey
}

// Survey answers questions about many jobs.
type Survey interface {
	Asker
	// Find finds the job of a run. Of several the last that has not ended counts, else the last.
	// Where the scheduler knows none but those in except, the job's ID is "".
	Find(ctx context.Context, dir rundir.Dir, except []string) (Job, error)
}

// Unanswerable is the error of a question that will find no answer later either: the job is on
// another cluster, or the scheduler's commands are not here.
type Unanswerable struct{ Err error }

// Error is the cause's.
func (u Unanswerable) Error() string { return u.Err.Error() }

// Unwrap gives the cause.
func (u Unanswerable) Unwrap() error { return u.Err }
