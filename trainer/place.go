package trainer

import (
	"errors"
	"fmt"
	"regexp"
)

var (
	// programFrame matches a function of the program in a stack trace, with its file and line.
	programFrame = regexp.MustCompile(`(?m)^(main\.\S+)\n\t(.+:\d+)$`)
	// graphPrefix matches what GoMLX puts before an error in the building of a graph.
	graphPrefix = regexp.MustCompile(`(?:failed during graph construction/compilation: )?compilation failed for Exec "[^"]*": graphFn for "[^"]*" panicked: `)
)

// placedError is an error with another text.
type placedError struct {
	text string
	err  error
}

var _ error = (*placedError)(nil)

func (e *placedError) Error() string { return e.text }

func (e *placedError) Unwrap() error { return e.err }

// placed adds the place in the program to an error with a stack trace, such as those of GoMLX's
// graphs: the line of a layer, where otherwise only the call of Fit would be known. It leaves out
// what GoMLX says about how it builds graphs.
func placed(err error) error {
	text := graphPrefix.ReplaceAllString(err.Error(), "")
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if found := programFrame.FindStringSubmatch(fmt.Sprintf("%+v", cause)); found != nil {
			text += fmt.Sprintf(" (in %s at %s)", found[1], found[2])
			break
		}
	}
	return &placedError{text, err}
}
