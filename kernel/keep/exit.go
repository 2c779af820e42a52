package keep

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Exit saves the kept variables, then calls os.Exit.
func Exit(code int) {
	SaveNow()
	os.Exit(code)
}

// saveTime is how long SaveNow waits for another goroutine that is saving.
const saveTime = time.Minute

// SaveNow saves the variables of the running main, because the program is about to end without
// returning from it. Other goroutines may still be changing the variables, so a value may be torn.
func SaveNow() {
	defer singleProcessor()()
	for end := time.Now().Add(saveTime); !program.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return
		}
	}
	defer program.Unlock()
	program.sudden = true
	// A value that another goroutine is changing may be incomplete, which must not crash the
	// program.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "%%keep: the values from before this program are kept: %v\n", r)
		}
	}()
	program.running.save()
}

// singleProcessor makes all goroutines share one processor until the function that it returns is
// called. There, a goroutine is hardly ever interrupted while it changes a map. Encoding a map
// during such a change would crash the program.
func singleProcessor() (end func()) {
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}

// Sudden reports whether the values are saved because the program ends without returning from main,
// so that another goroutine may be changing them. It is for the functions passed to Register.
func Sudden() bool { return program.sudden }

// line returns the place of the %keep that names a variable, given the variable's entry in Vars; ""
// if it is not known.
func line(entry any) string {
	get, ok := entry.(func() any)
	if !ok {
		return ""
	}
	pc := reflect.ValueOf(get).Pointer()
	file, n := runtime.FuncForPC(pc).FileLine(pc)
	return fmt.Sprintf(" at %s:%d", file, n)
}

// panics reports whether this code runs because of a panic.
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
