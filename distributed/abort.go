package distributed

import (
	"errors"

	"gonbatch/internal/rundir"
)

// Progress tells the watch over the ranks which training step this one has come to: reports name
// it. It is cheap: call it in each step. From then on, until Idle or Close, the end of this process
// counts as a failure even if no other rank waits for it.
func (w *World) Progress(step int64) {
	w.watch.Progress(step)
	w.progress.Report(step)
}

// Idle takes back what Progress said: this rank does not train any more.
func (w *World) Idle() { w.watch.Idle() }

// Leave says goodbye to the other ranks without waiting for them, for a process that ends at once.
// It is not collective.
func (w *World) Leave() { w.watch.Close() }

// FailureError is an error that knows its kind.
type FailureError struct {
	Kind rundir.FailureKind
	Err  error
}

func (e *FailureError) Error() string { return e.Err.Error() }

// Unwrap is the error without its kind.
func (e *FailureError) Unwrap() error { return e.Err }

// Abort ends all ranks with a code that is not zero, because of what happened on this one: a loss
// that is no number, say. The report names this rank, its host and the error; failure.json in the
// run directory has them too. A *FailureError in the error's chain gives its kind. Abort does not
// return, and is not collective.
func (w *World) Abort(err error) {
	err = w.Explain(err)
	kind := rundir.Error
	var failure *FailureError
	if errors.As(err, &failure) {
		kind = failure.Kind
	}
	w.watch.Fail(kind, err)
}
