package submit

import "syscall"

// Interrupt is the cause of a context that a signal ended. It is an error.
type Interrupt struct {
	Signal syscall.Signal
	// Again is closed when another signal came: nothing may take long any more. Nil never is.
	Again <-chan struct{}
}

// Error names the signal in words.
func (i Interrupt) Error() string { return "ended by a signal: " + i.Signal.String() }

// ExitCode is what a shell would say: 128 plus the signal.
func (i Interrupt) ExitCode() int { return 128 + int(i.Signal) }
