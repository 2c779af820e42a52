package submit

import (
	"context"
	"errors"

	"gonbatch/internal/rundir"
)

// Scheduler runs jobs: a batch system, or this machine. All methods may be called concurrently, and
// none blocks longer than the batch system's own commands, which have a time limit. The interfaces
// below are for features that only some schedulers have.
type Scheduler interface {
	// Name is the scheduler's name in manifests.
	Name() string
	// Platform is the XLA platform for a job that doesn't ask for one; "" lets each rank find out.
	Platform(spec JobSpec) string
	// Validate reports everything in spec that this scheduler cannot accept, beyond what
	// JobSpec.Validate refuses for all schedulers.
	Validate(spec JobSpec) error
	// Prepare decides what spec leaves to the scheduler, such as the kind of MPI, and refuses a job
	// that cannot run. It changes nothing. With preview set, it also works on a machine that cannot
	// queue jobs.
	Prepare(ctx context.Context, spec JobSpec, preview bool) (JobSpec, error)
	// Submit submits the job that is staged in spec.RunDir, and returns as soon as the scheduler
	// has accepted it. It does so even if ctx ends meanwhile, because a queued job must not be
	// lost. Do not repeat it after an unclear error: the job may be queued.
	Submit(ctx context.Context, spec JobSpec) (Job, error)
	// Status returns the job's status. Call it at most about once a second. If the scheduler has
	// forgotten the job, the files in its run directory decide. After an Unanswerable error, asking
	// again is useless.
	Status(ctx context.Context, job Job) (Status, error)
	// Cancel ends the job. It may be repeated; cancelling a job that has ended is not an error.
	Cancel(ctx context.Context, job Job) error
}

// Asker returns a job's status, as Scheduler.Status does.
type Asker interface {
	Status(ctx context.Context, job Job) (Status, error)
}

// ErrQueueFull is the error of a scheduler that takes no more jobs of the user before others have
// ended. The run is staged.
var ErrQueueFull = errors.New("the cluster takes no more jobs of yours before others have ended")

// Batch is a Scheduler that starts jobs through a batch script, spec.RunDir.Script(), which the
// user can also read and queue.
type Batch interface {
	Scheduler
	// Script returns the batch script of a prepared job.
	Script(spec JobSpec) ([]byte, error)
	// QueueCommand returns the command line with which the user can queue the script.
	QueueCommand(spec JobSpec) string
}

// Foreground is a Scheduler whose jobs run in the process that submits them: Submit only accepts
// the job, and Run runs it.
type Foreground interface {
	Scheduler
	// Run starts the programs of a submitted job, shows rank 0's log, and blocks until they have
	// ended. When ctx ends, it tells them to save and stop. If the job did not succeed, the error
	// is a *JobError, unless something other than the job went wrong.
	Run(ctx context.Context, spec JobSpec) (Status, error)
}

// Controller is a Scheduler whose jobs can be changed before they end.
type Controller interface {
	// Control holds, releases or requeues a job.
	Control(ctx context.Context, job Job, verb Verb) error
	// Updatable returns the names of the options that Update can change.
	Updatable() []string
	// Update changes one of a job's options to that of spec.
	Update(ctx context.Context, job Job, spec JobSpec, name string) error
}

// Verb is what a Controller does to a job.
type Verb string

// The verbs. A held job doesn't start until it is released; a requeued one starts again.
const (
	Hold    Verb = "hold"
	Release Verb = "release"
	Requeue Verb = "requeue"
)

// Done is the verb's past participle.
func (v Verb) Done() string {
	return map[Verb]string{Hold: "held", Release: "released", Requeue: "requeued"}[v]
}

// Refuses is why a job in a state can't be held, released or requeued; "" if it can.
func (v Verb) Refuses(state State) string {
	switch {
	case v == Hold && state != Pending:
		return "only a job that waits can be held; submit cancel stops it, and submit resume starts it again"
	case v == Requeue && state == Pending:
		return "it waits already"
	}
	return ""
}

// Surveyor is a Scheduler that answers questions about many jobs at once, and finds jobs by their
// script, because the user may have queued one by hand.
type Surveyor interface {
	// Survey returns a Survey, which queries the scheduler once; its answers are of that time. It
	// will be asked for the status of these jobs.
	Survey(ctx context.Context, jobs ...Job) Survey
}

// Survey answers questions about many jobs.
type Survey interface {
	Asker
	// Find finds the job of a run. Of several jobs it returns the last that has not ended, else the
	// last. If the scheduler knows only jobs in except, the ID is "".
	Find(ctx context.Context, dir rundir.Dir, except []string) (Job, error)
	// Live returns all jobs of a run that have not ended, the oldest first. There should be at most
	// one: an administrator may requeue the job of a run that has been resumed since.
	Live(ctx context.Context, dir rundir.Dir) ([]Job, error)
}

// Unanswerable is the error of a query that will fail later too: the job is on another cluster, or
// the scheduler's commands are missing here.
type Unanswerable struct{ Err error }

// Error returns the cause's message.
func (u Unanswerable) Error() string { return u.Err.Error() }

// Unwrap returns the cause.
func (u Unanswerable) Unwrap() error { return u.Err }
