package submit

import (
	"errors"
	"fmt"
)

// UsageError is the error of a wrong option, wherever it was set.
type UsageError struct{ Err error }

// Error returns the cause's message.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef is fmt.Errorf for a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// ExitCode returns 0 without an error, the exit code of a failed program, 128 plus the signal as a
// shell does, 2 for a wrong option, else 1.
func ExitCode(err error) int {
	var job *JobError
	var interrupt Interrupt
	var usage UsageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &job) && job.Status.ExitCode != 0:
		return job.Status.ExitCode
	case errors.As(err, &job) && job.Status.Signal != 0:
		return 128 + job.Status.Signal
	case errors.As(err, &interrupt):
		return interrupt.ExitCode()
	case errors.As(err, &usage):
		return 2
	}
	return 1
}
