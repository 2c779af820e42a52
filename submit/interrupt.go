package submit

import "syscall"

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
