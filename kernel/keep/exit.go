package keep

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Exit is os.Exit for a program that keeps variables: it saves them first.
func Exit(code int) {
	SaveNow()
	os.Exit(code)
}

// saveTime bounds how long SaveNow waits for another goroutine that saves.
const saveTime = time.Minute

// SaveNow saves the variables of the main that runs, since the program is about to end without a
// return from it. Other goroutines may still change them: a value may be torn.
func SaveNow() {
	// With one processor a goroutine is hardly ever interrupted while it changes a map, which would
	// end the program if the map is encoded meanwhile.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for end := time.Now().Add(saveTime); !program.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return
		}
	}
	defer program.Unlock()
	// What another goroutine changes meanwhile may be half of a value, which must not end in a
	// crash.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "%%keep: the values of before this program are kept: %v\n", r)
		}
	}()
	program.running.save()
}

// line is where %keep names a variable, given its entry in Vars; "" if that is not known.
func line(entry any) string {
	get, ok := entry.(func() any)
	if !ok {
		return ""
	}
	file, n := placeOf(get)
	return " at " + file + ":" + n
}

// panics reports whether a panic runs this code.
func panics() bool {
	calls := make([]uintptr, 100)
	frames := runtime.CallersFrames(calls[:runtime.Callers(1, calls)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if strings.HasPrefix(frame.Function, "runtime.gopanic") {
			return true
		}
	}
	return false
}
