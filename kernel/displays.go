package kernel

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// displays is the writing end of the pipe through which a cell's programs send displays to GoNB.
// GoNB closes the pipe as soon as the program has ended, and loses what it has not read.
type displays struct{ pipe int }

// displayPatience is how long GoNB may take to read more of the displays.
const displayPatience = 10 * time.Second

// openDisplays opens the pipe at a path. A pipe that can't be opened needs no draining.
func openDisplays(path string) displays {
	// GoNB may not have opened its end yet. Without a reader, only this opening succeeds at once.
	both, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return displays{-1}
	}
	defer unix.Close(both) //nolint:errcheck // nothing was written to it
	pipe, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return displays{-1}
	}
	return displays{pipe}
}

// drain waits until GoNB has shown all displays, and closes the pipe.
//
// An empty pipe only means that GoNB has read the last display. It reads again when it has shown
// that one, so drain sends an empty message of encoding/gob, at which GoNB's decoder ends.
func (d displays) drain() {
	if d.pipe < 0 {
		return
	}
	defer unix.Close(d.pipe) //nolint:errcheck // all is read, or nobody reads it
	if !waitUntilRead(d.pipe, displayPatience) {
		return
	}
	if _, err := unix.Write(d.pipe, []byte{0}); err == nil {
		waitUntilRead(d.pipe, displayPatience)
	}
}

// endless is a patience that doesn't end: if GoNB ends, so does this process.
const endless time.Duration = math.MaxInt64

// waitUntilRead reports whether a pipe becomes empty: then the next write is read at once. It gives
// up if nobody reads for the time of patience.
func waitUntilRead(pipe int, patience time.Duration) bool {
	before, since := 0, time.Now()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		left, err := unix.IoctlGetInt(pipe, unix.TIOCINQ)
		switch {
		case err != nil:
			return false
		case left == 0:
			return true
		case left != before:
			before, since = left, time.Now()
		case time.Since(since) > patience:
			return false
		}
		time.Sleep(pause)
	}
}
