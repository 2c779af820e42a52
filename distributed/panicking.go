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
