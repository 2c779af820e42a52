package trainer

import (
	"errors"
	"fmt"
	"regexp"
)

// programFrame matches a function of the program in a stack trace, with its file and line.
var programFrame = regexp.MustCompile(`(?m)^(main\.\S+)\n\t(.+:\d+)$`)

// placed adds the place in the program to an error with a stack trace, such as those of GoMLX's
// graphs: the line of a layer, where otherwise only the call of Fit would be known.
func placed(err error) error {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if found := programFrame.FindStringSubmatch(fmt.Sprintf("%+v", cause)); found != nil {
			return fmt.Errorf("%w (in %s at %s)", err, found[1], found[2])
		}
	}
	return err
}
