package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// GoNB looks for places in main.go in whatever a program writes to stderr, and in the compiler's
// messages. It ends where the text has other colons too, as a log line with the time and the place
// has them, and so would the session. So it gets no main.go while a program runs, without which it
// does not look, and only messages that it can read.

// hiddenSuffix is added to the name of the program's text while the program runs.
const hiddenSuffix = ".running"

// mainFiles are the files in which GoNB puts a cell, the second one for tests.
var mainFiles = [...]string{"main.go", "main_test.go"}

// hideMain takes the program's text from GoNB until ShowMain.
func (b *builder) hideMain() error {
	err := os.Rename(b.mainFile(), b.mainFile()+hiddenSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hide the program from GoNB: %w", err)
	}
	return nil
}

// ShowMain gives the cells' module back what a build has hidden. Call it when the program has ended
// and GoNB has said so.
func ShowMain(dir string) (err error) {
	for _, name := range mainFiles {
		name = filepath.Join(dir, name)
		hidden := name + hiddenSuffix
		var renamed error
		if _, there := os.Lstat(name); there == nil {
			renamed = os.Remove(hidden) // GoNB has written a newer one.
		} else {
			renamed = os.Rename(hidden, name)
		}
		if !errors.Is(renamed, fs.ErrNotExist) {
			err = errors.Join(err, renamed)
		}
	}
	return err
}

var (
	// place is what GoNB takes for a place in the program.
	place = regexp.MustCompile(`(main(?:_test)?\.go):(\d)`)
	// compilerPlace begins a line that GoNB can read, if no other place follows.
	compilerPlace = regexp.MustCompile(`^\t?(?:\./|[^:]*/)?main(?:_test)?\.go:\d{1,7}(?:(?::[1-9]\d{0,5})?: |$)`)
	outputLine    = regexp.MustCompile(`[^\n]+`)
)

// readable is the compiler's output with no more places than GoNB can read: others are written with
// a space.
func readable(output []byte) []byte {
	return outputLine.ReplaceAllFunc(output, func(line []byte) []byte {
		begin := compilerPlace.Find(line)
		return append(begin[:len(begin):len(begin)], place.ReplaceAll(line[len(begin):], []byte("$1 $2"))...)
	})
}
