package distributed

import (
	"errors"
	"sync/atomic"

	"gonbatch/internal/rundir"
)

// Progress reports which training step this rank has reached, for reports of failures. It is cheap:
// call it at every step. From the first call until Idle or Close, the end of this process counts as
// a failure, even if no other rank waits for it.
func (w *World) Progress(step int64) { w.ProgressAfter(0, step) }

// ProgressAfter is Progress for one of several training runs of a program. before is the number of
// steps of those that came before it: what Reached returned when it began. A program that dies in
// two starts in a row at the same sum of both is not started again.
func (w *World) ProgressAfter(before, step int64) {
	w.watch.Progress(step)
	w.progress.Report(before + step)
	reached.Store(max(reached.Load(), before+step))
}

// reached is the most that ProgressAfter has reported in this process, in any world. Only one world
// is in use at a time.
var reached atomic.Int64

// betweenRuns keeps the end of a training run apart from the beginning of the next one: see
// rundir.Death.
const betweenRuns = 2

// Reached returns how many training steps this program has reported, plus a few for each training
// run, so that no two places in its training have numbers that are the same or next to each other.
// It is 0 before the first training run.
func (w *World) Reached() int64 {
	if most := reached.Load(); most > 0 {
		return most + betweenRuns
	}
	return 0
}

// Idle ends the effect of Progress: this rank is no longer training.
func (w *World) Idle() { w.watch.Idle() }

// Leave announces to the other ranks that this process exits at once. It doesn't wait for them and
// is not collective.
func (w *World) Leave() { w.watch.Close() }

// FailureError is an error with a kind of failure.
type FailureError struct {
	Kind rundir.FailureKind
	Err  error
}

func (e *FailureError) Error() string { return e.Err.Error() }

// Unwrap returns the error without its kind.
func (e *FailureError) Unwrap() error { return e.Err }

// Abort ends all ranks with a non-zero exit code, because of an error on this rank, such as a loss
// that is not a number. The report, and failure.json in the run directory, name this rank, its host
// and the error. A *FailureError in the error's chain sets the kind of the failure. Abort does not
// return and is not collective.
func (w *World) Abort(err error) {
	err = w.Explain(err)
	kind := rundir.Error
	var failure *FailureError
	if errors.As(err, &failure) {
		kind = failure.Kind
	}
	w.watch.Fail(kind, err)
}
