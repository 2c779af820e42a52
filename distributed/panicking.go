package distributed

import (
	"runtime"
	"strings"
)

// panicking reports whether the caller runs as a deferred call because of a panic, and whether that
// is one of Go's own, such as that of a nil pointer.
func panicking() (is, byRuntime bool) {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if is {
			return true, strings.HasPrefix(frame.Function, "runtime.")
		}
		is = frame.Function == "runtime.gopanic"
		if !more {
			return is, false
		}
	}
}

// inMain reports whether the function main, or a function literal in it, called the function that
// asks.
func inMain() bool {
	callers := make([]uintptr, 8)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") { // It runs deferred calls.
			return frame.Function == "main.main" || strings.HasPrefix(frame.Function, "main.main.")
		}
		if !more {
			return false
		}
	}
}
