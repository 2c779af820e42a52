package fetch

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrChecksum is in the chain of errors about content with a wrong SHA-256.
	ErrChecksum = errors.New("wrong checksum")
	// ErrTruncated is in the chain of errors about a download that ended early.
	ErrTruncated = errors.New("truncated download")
)

// Try is one way of getting a file, and why it failed.
type Try struct {
	Way string // Way is an address or a command.
	Err error
}

// Error reports that a file could not be downloaded, with every way that was tried, and the fix.
type Error struct {
	Name  string // Name of the file.
	Path  string // Path where the file should be.
	Tries []Try
	Fix   string // Fix is what the user can do by hand.
}

// Error lists the tries, one per line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot get %s:", e.Name)
	for _, t := range e.Tries {
		fmt.Fprintf(&b, "\n  %s: %s", t.Way, indent(t.Err.Error()))
	}
	if e.Fix != "" {
		fmt.Fprintf(&b, "\nfix: %s", e.Fix)
	}
	return b.String()
}

// Unwrap returns the errors of all tries, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Tries))
	for i, t := range e.Tries {
		errs[i] = t.Err
	}
	return errs
}

// Tries returns the tries in err's chain, or err itself as one try of the given way. It lets a
// caller that has several ways report them in one flat list.
func Tries(way string, err error) []Try {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Tries
	}
	return []Try{{Way: way, Err: err}}
}

// StatusError is a response other than 200.
type StatusError struct {
	Code   int
	Status string // Status is the line that the server sent, such as "404 Not Found".
}

func (e *StatusError) Error() string { return "the server answered " + e.Status }

// temporary reports whether the same request may succeed later.
func (e *StatusError) temporary() bool {
	return e.Code >= 500 || e.Code == 408 || e.Code == 425 || e.Code == 429
}

// diskError marks a local failure, which no other address can fix.
type diskError struct{ error }

func (e diskError) Unwrap() error { return e.error }

func indent(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ") }
