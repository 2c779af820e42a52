package submit

import "fmt"

// UsageError is a wrong option, wherever it was set.
type UsageError struct{ Err error }

// Error is the cause's.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef is fmt.Errorf for a wrong option.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
