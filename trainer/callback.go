package trainer

import (
	"fmt"
	"strings"
)

// Callback holds functions that the loop calls. Each may be nil. All ranks call them, at the same
// points, so they may use the world's collectives. Guard actions of a single rank, such as writing
// a file, with World.IsMain; if they may take minutes, use World.OnMain or World.Alone. An error
// ends the training. Failed is different in all of this.
//
// This is their order. What is in brackets is called only where it is due:
//
//	FitStart
//	[ValidationEnd, CheckpointSaved] of a training that resumes before a validation
//	for each epoch:
//		EpochStart, unless the training resumes within the epoch
//		for each batch:
//			BatchStart, BatchEnd, [ValidationEnd], [CheckpointSaved]
//		[ValidationEnd], EpochEnd, [CheckpointSaved]
//	CheckpointSaved, FitEnd
//
// If the training is told to stop, the last line is CheckpointSaved, Failed with a *StoppedError;
// if it fails, Failed.
//
// The forward and backward pass of a batch and the optimizer's update are one compiled program, so
// no callback runs between them. WithGradients changes the gradients before the update, within that
// program.
type Callback struct {
	// Name identifies the callback in messages, and its State in checkpoints. It must be unique if
	// State is set.
	Name string

	FitStart        func(*Event) error
	EpochStart      func(*Event) error
	BatchStart      func(*Event) error // Before each batch. It may still be loading.
	BatchEnd        func(*Event) error // After each batch, Event.Loss is its loss on this rank.
	ValidationEnd   func(*Event) error
	EpochEnd        func(*Event) error
	CheckpointSaved func(*Event) error // After the copy off the device; the files may still be on their way to the disk.
	FitEnd          func(*Event) error
	// Failed is called once if Fit returns an error or ends the process because of one, with the
	// error; errors.As finds a *StoppedError or *DivergedError. It must not use collectives: the
	// other ranks may have failed elsewhere, or may not know of the error, and one that is ended
	// because another one has died does not call it. A panic is no error.
	Failed func(*Event, error)

	// State returns what the callback must remember when the training stops. Restore gets it when
	// the training resumes. Rank 0's state is saved, and all ranks get it.
	State   func() ([]byte, error)
	Restore func([]byte) error
}

// Event says where the training is.
type Event struct {
	Trainer *Trainer
	Epoch   int   // From 0.
	Batch   int   // Batches of this epoch that are done.
	Step    int64 // Updates of the weights that are done.
	// Loss is the loss of the batch on this rank.
	Loss float64
	// Metrics has the newest value of each metric, the same on all ranks.
	Metrics map[string]float64
}

// Stop ends the training after the update that this batch belongs to, as if a limit had been
// reached. Every rank must call it. The training stays ended when it is started again.
func (e *Event) Stop(reason string) { e.Trainer.finish(endedByCallback, reason) }

type hook func(Callback) func(*Event) error

var (
	onFitStart      hook = func(c Callback) func(*Event) error { return c.FitStart }
	onEpochStart    hook = func(c Callback) func(*Event) error { return c.EpochStart }
	onBatchStart    hook = func(c Callback) func(*Event) error { return c.BatchStart }
	onBatchEnd      hook = func(c Callback) func(*Event) error { return c.BatchEnd }
	onValidationEnd hook = func(c Callback) func(*Event) error { return c.ValidationEnd }
	onEpochEnd      hook = func(c Callback) func(*Event) error { return c.EpochEnd }
	onCheckpoint    hook = func(c Callback) func(*Event) error { return c.CheckpointSaved }
	onFitEnd        hook = func(c Callback) func(*Event) error { return c.FitEnd }
)

// call runs one hook of all callbacks.
func (t *Trainer) call(h hook) error {
	for _, c := range t.callbacks {
		f := h(c)
		if f == nil {
			continue
		}
		end := t.recorder.During(strings.TrimSpace("callback " + c.Name))
		err := f(t.event())
		end()
		if err != nil {
			return fmt.Errorf("callback %q: %w", c.Name, err)
		}
	}
	return nil
}

func (t *Trainer) event() *Event {
	return &Event{Trainer: t, Epoch: t.at.Epoch, Batch: t.at.Batch, Step: t.at.Step, Loss: t.loss, Metrics: t.metrics}
}

// failed tells the callbacks of an error that ends Fit, once.
func (t *Trainer) failed(err error) {
	if t.told != nil {
		return
	}
	t.told = err
	for _, c := range t.callbacks {
		if c.Failed != nil {
			c.Failed(t.event(), err)
		}
	}
}

// callbackStates returns the states of the callbacks that have one.
func (t *Trainer) callbackStates() (map[string][]byte, error) {
	states := map[string][]byte{}
	for _, c := range t.callbacks {
		if c.State == nil {
			continue
		}
		state, err := c.State()
		if err != nil {
			return nil, fmt.Errorf("state of the callback %q: %w", c.Name, err)
		}
		states[c.Name] = state
	}
	return states, nil
}

func (t *Trainer) restoreCallbacks(states map[string][]byte) error {
	for _, c := range t.callbacks {
		state, ok := states[c.Name]
		if c.Restore == nil || !ok {
			continue
		}
		if err := c.Restore(state); err != nil {
			return fmt.Errorf("restore the callback %q: %w", c.Name, err)
		}
	}
	return nil
}

func checkCallbacks(callbacks []Callback) error {
	seen := map[string]bool{}
	for _, c := range callbacks {
		if c.State != nil && (c.Name == "" || seen[c.Name]) {
			return fmt.Errorf("callbacks that keep state need unique, non-empty names: %q", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}
