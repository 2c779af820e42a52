package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
)

// GoNB searches everything that a program writes to stderr, and the compiler's messages, for places
// in main.go. It exits if the text has other colons too, such as a log line with a time and a
// place, and the session would end with it. It doesn't search if there is no main.go, so main.go is
// hidden while a program runs, and GoNB gets only compiler messages that it can parse.

// hiddenSuffix is appended to the name of the program's text while the program runs.
const hiddenSuffix = ".running"

// mainFiles are the files in which GoNB puts a cell; the second one is for tests.
var mainFiles = [...]string{"main.go", "main_test.go"}

// hideMain hides the program's text from GoNB until ShowMain. From now on, an interrupt doesn't end
// this process: GoNB panics if a build fails and there is no main.go. The kernel interrupts the
// program instead.
func (b *builder) hideMain() error {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	err := os.Rename(b.mainFile(), b.mainFile()+hiddenSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("hide the program from GoNB: %w", err)
	}
	return nil
}

// ShowMain restores the file that a build has hidden in the cells' module. Call it when the program
// has ended and GoNB has reported that.
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
	// place matches what GoNB takes for a place in the program.
	place = regexp.MustCompile(`(main(?:_test)?\.go):(\d)`)
	// compilerPlace matches the beginning of a line that GoNB can parse, if no other place follows.
	compilerPlace = regexp.MustCompile(`^\t?(?:\./|[^:]*/)?main(?:_test)?\.go:\d{1,7}(?:(?::[1-9]\d{0,5})?: |$)`)
	outputLine    = regexp.MustCompile(`[^\n]+`)
)

// readable returns the compiler's output with only the places that GoNB can parse: in the others, a
// space replaces the colon.
func readable(output []byte) []byte {
	return outputLine.ReplaceAllFunc(output, func(line []byte) []byte {
		begin := compilerPlace.Find(line)
		return append(begin[:len(begin):len(begin)], place.ReplaceAll(line[len(begin):], []byte("$1 $2"))...)
	})
}
