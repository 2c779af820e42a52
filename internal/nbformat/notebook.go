package nbformat

import (
	"encoding/json"
	"path/filepath"
	"regexp"
)

// Notebook is one Jupyter notebook.
type Notebook struct {
	// Path is the file that the notebook was read from, or the name given to Parse.
	Path string
	// Major and Minor are the version of the format: 4 and 0 to 5.
	Major, Minor int
	// Cells are the notebook's cells, in order.
	Cells []*Cell
	// Origin is the notebook that this one was made from; nil for a notebook of its own.
	Origin *Origin

	fields map[string]json.RawMessage
}

// Name returns the file name of the notebook, or of its origin, without a folder.
func (nb *Notebook) Name() string {
	if nb.Origin != nil {
		return nb.Origin.Notebook
	}
	return filepath.Base(nb.Path)
}

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
