package nbformat

import "regexp"

// label matches what Label returns; place matches a cell's line after the notebook's name.
const (
	label = `(\d+|\[\d+\])`
	place = `\.(?:ipynb|go)\[cell ` + label + `\]:(\d+)`
)

var (
	// framePlace matches a line of a stack trace, of Go's or of log.Fatal in a notebook, which
	// names the function ("main.main at "). It has nothing else, so the name may have spaces.
	framePlace = regexp.MustCompile(`^\t(?:\S+ at )?(?:.*/)?([^/]*` + place + `)(?: \+0x[0-9a-f]+)?$`)
	textPlace  = regexp.MustCompile(`[^\s/]*` + place)
)

// Places returns the places in cells that a line of a log names, such as mnist.ipynb[cell 3]:12. In
// the middle of a line, a notebook's name begins after its last space.
func Places(line string) []string {
	if m := framePlace.FindStringSubmatch(line); m != nil {
		return m[1:2]
	}
	return textPlace.FindAllString(line, -1)
}
