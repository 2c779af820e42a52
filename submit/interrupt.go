package submit

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Interrupt is the cause of a context that a signal ended.
type Interrupt struct {
	Signal syscall.Signal
	// Again is closed when another signal arrives: then nothing may take long. A nil channel is
	// never closed.
	Again <-chan struct{}
}

// Error names the signal.
func (i Interrupt) Error() string { return "ended by a signal: " + i.Signal.String() }

// ExitCode returns 128 plus the signal, as a shell does.
func (i Interrupt) ExitCode() int { return 128 + int(i.Signal) }

// endSignals are the signals that Interruptible waits for, and that its whole process group may
// get.
var endSignals = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// signalTime is how long after its child a process may get the same signal.
const signalTime = time.Second

// BlameInterrupt returns the cause of an interrupted ctx, in place of an error that only says that
// something came to no end, or that the reader of the output is gone. Other errors stay as they
// are.
func BlameInterrupt(ctx context.Context, err error) error {
	known, ended := Interrupt{}, endedBySignal(err)
	unread := errors.Is(err, syscall.EPIPE)
	if errors.As(err, &known) || ended == 0 && !unread && !errors.Is(err, context.Canceled) {
		return err
	}
	if unread || slices.Contains(endSignals, ended) {
		select {
		case <-ctx.Done():
		case <-time.After(signalTime):
		}
	}
	if cause := (Interrupt{}); errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return err
}

// endedBySignal returns the signal that has ended the process of an error; 0 if there is none.
func endedBySignal(err error) syscall.Signal {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}
