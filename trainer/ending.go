package trainer

import (
	"fmt"
)

// ending is why a training run ended. It is stored in the checkpoint, so that the training stays
// ended when it is started again.
type ending struct {
	Cause  endCause `json:"cause"`
	Reason string   `json:"reason"` // For people.
}

// endCause says what ended a training run, and so what it takes to resume it.
type endCause string

const (
	endedByLimit         endCause = "limit"          // max_epochs or max_steps: a higher one resumes it.
	endedByTime          endCause = "max_time"       // More time resumes it.
	endedByEarlyStopping endCause = "early_stopping" // More patience, a higher minimum or a better threshold resumes it.
	endedByCallback      endCause = "callback"       // Event.Stop: it stays ended.
)

// limit returns the ending by max_epochs or max_steps; nil if neither is reached.
func (t *Trainer) limit() *ending {
	c := t.config
	switch {
	case c.MaxEpochs > 0 && t.at.Epoch >= c.MaxEpochs:
		return &ending{endedByLimit, fmt.Sprintf("max_epochs of %d is reached", c.MaxEpochs)}
	case c.MaxSteps > 0 && t.at.Step >= int64(c.MaxSteps):
		return &ending{endedByLimit, fmt.Sprintf("max_steps of %d is reached", c.MaxSteps)}
	}
	return nil
}

// stillEnded reports whether a resumed training is over under the current configuration too.
func (t *Trainer) stillEnded() bool {
	switch e := t.at.End; {
	case e == nil:
		return false
	case e.Cause == endedByLimit:
		return t.limit() != nil
	case e.Cause == endedByTime:
		return t.config.MaxTime > 0 && t.at.Elapsed >= t.config.MaxTime || t.limit() != nil
	case e.Cause == endedByEarlyStopping:
		return t.at.Stopping.verdict(t.config.EarlyStopping) != "" && t.pastMinimum()
	}
	return true
}

// pastMinimum reports whether early stopping may end the training.
func (t *Trainer) pastMinimum() bool {
	epochs := t.at.Epoch
	if t.at.Batch >= t.plan.batches { // Validated before the epoch is counted.
		epochs++
	}
	return epochs >= t.config.MinEpochs && t.at.Step >= int64(t.config.MinSteps)
}

// ended reports whether the training is over.
func (r *run) ended() bool { return r.at.End != nil || r.limit() != nil }

// finish ends the training after this update. Only the first reason counts.
func (t *Trainer) finish(cause endCause, reason string) {
	if t.at.End == nil {
		t.at.End = &ending{cause, reason}
	}
}

// finishAtLimit records the limit that ended the training. If something else ended it, it prints
// that reason.
func (r *run) finishAtLimit() {
	if r.at.End != nil {
		r.printf("%straining ended after step %d: %s\n", r.label(), r.at.Step, r.at.End.Reason)
		return
	}
	r.at.End = r.limit()
}
