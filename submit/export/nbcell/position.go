package nbcell

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gonbatch/internal/nbformat"
)

// position matches a place in a cell in programs, logs and stack traces.
var position = regexp.MustCompile(`([^\s/]*\.(?:ipynb|go))\[cell (\d+|\[\d+\])\]:(\d+)`)

// Positions returns the positions in cells that a string contains, such as mnist.ipynb[cell 3]:12.
func Positions(text string) []string { return position.FindAllString(text, -1) }

// DescribePosition describes a position from Positions in full: the cell with its id and the
// heading above it, and the quoted line. It returns "" if the notebook has no such line.
func DescribePosition(nb *nbformat.Notebook, at string) string {
	m := position.FindStringSubmatch(at)
	if m == nil {
		return ""
	}
	line, _ := strconv.Atoi(m[3])
	for _, cell := range Describe(nb) {
		if cell.Label() != m[2] {
			continue
		}
		ref := cell.Ref
		ref.Notebook = m[1]
		text := strings.TrimSpace(lineOf(cell.Cell, line))
		if text == "" {
			return ""
		}
		return fmt.Sprintf("%s, line %d:\n\t%s", ref, line, text)
	}
	return ""
}
