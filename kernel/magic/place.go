package magic

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// places replaces places in the notebook that was written for the job with places that the user
// knows. Without cells it changes nothing.
type places struct {
	// file is the session's notebook, made of cells; notebook is the user's.
	file, notebook string
	cells          []Cell
}

// name replaces the places in a message of the submit command.
func (p places) name(text string) string {
	if len(p.cells) == 0 {
		return text
	}
	file := `(?:` + regexp.QuoteMeta(filepath.Dir(p.file)+"/") + `)?` + regexp.QuoteMeta(filepath.Base(p.file))
	cell := regexp.MustCompile(file + `, cell (\d+)(?: \(id [^)\n]*\))?`)
	text = cell.ReplaceAllStringFunc(text, func(found string) string {
		number, err := strconv.Atoi(cell.FindStringSubmatch(found)[1])
		if err != nil || number < 1 || number > len(p.cells) {
			return found
		}
		return p.cell(p.cells[number-1])
	})
	text = regexp.MustCompile(file).ReplaceAllString(text, strings.ReplaceAll(p.notebook, "$", "$$"))
	return text
}

// cell names a cell.
func (p places) cell(c Cell) string {
	switch {
	case c.number > 0:
		return p.notebook + ", cell " + c.label(0)
	case c.Last > 0:
		return "cell " + c.label(0)
	}
	return "this cell"
}
