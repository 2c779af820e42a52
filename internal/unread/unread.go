// Package unread notices errors that nobody looks at. A program that drops the error of its
// training would end as if it had trained.
//
//	return unread.Error("trainer.Fit", err)
//
// An error has been looked at if something asked for its text or, as errors.Is and errors.As do,
// for what it wraps. A comparison with nil can't be seen.
package unread

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// patience is how long an error may be unread before it is printed.
const patience = time.Second

var registry = struct {
	sync.Mutex
	unread []*failure
	out    io.Writer
}{out: os.Stderr}

// failure is an error of a call that nobody may have looked at yet.
type failure struct {
	err  error
	call string // What was called, and where.
	said bool
}

// Error returns err as an error of a function, such as "trainer.Fit", that should be looked at. It
// is printed if this doesn't happen within a second. It returns nil for nil.
func Error(function string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := err.(*failure); ok { //nolint:errorlint // one that wraps such an error is another
		return known
	}
	f := &failure{err: err, call: function + caller()}
	registry.Lock()
	defer registry.Unlock()
	registry.unread = append(registry.unread, f)
	time.AfterFunc(patience, func() { f.say() })
	return f
}

// Is reports whether an error is one at which nobody has looked, without looking at it.
func Is(err error) bool {
	f, ok := err.(*failure) //nolint:errorlint // one that wraps such an error was looked at
	registry.Lock()
	defer registry.Unlock()
	return ok && slices.Contains(registry.unread, f)
}

// caller returns the place in the program that called a package of gonbatch: " (main.go:12)".
func caller() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "gonbatch/") && frame.File != "" {
			return fmt.Sprintf(" (%s:%d)", frame.File, frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// say prints the error, once, if it is still unread.
func (f *failure) say() {
	registry.Lock()
	defer registry.Unlock()
	if f.said || !slices.Contains(registry.unread, f) {
		return
	}
	f.said = true
	fmt.Fprintf(registry.out, "gonbatch: warning: %s\n", f.line())
}

func (f *failure) line() string {
	return fmt.Sprintf("%s has failed, and nobody has looked at the error that it returns: %v", f.call, f.err)
}

// read notes that someone looks at the error.
func (f *failure) read() error {
	registry.Lock()
	defer registry.Unlock()
	registry.unread = slices.DeleteFunc(registry.unread, func(other *failure) bool { return other == f })
	return f.err
}

// Error implements error.
func (f *failure) Error() string { return f.read().Error() }

// Unwrap returns the error itself.
func (f *failure) Unwrap() error { return f.read() }

// Format formats the error as it would be without this package, also with a stack trace.
func (f *failure) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), f.read())
}

// Say prints the errors that are still unread, and forgets them.
func Say() {
	for _, line := range Take() {
		fmt.Fprintf(registry.out, "gonbatch: warning: %s\n", line)
	}
}

// Take returns a line for each error that is still unread, and forgets them.
func Take() (lines []string) {
	registry.Lock()
	defer registry.Unlock()
	for _, f := range registry.unread {
		lines = append(lines, f.line())
	}
	registry.unread = nil
	return lines
}
