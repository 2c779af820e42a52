package nbcell

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gonbatch/internal/nbformat"
)

// position matches a place as nbformat.Places returns it.
var position = regexp.MustCompile(`^(.*)\[cell (.+)\]:(\d+)$`)

// DescribePosition describes one of nbformat.Places in full: the cell with its id and the heading
// above it, and the quoted line. name is the notebook's, of which the place may have only the end.
// It returns "" if the notebook has no such line.
func DescribePosition(nb *nbformat.Notebook, name, at string) string {
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
		if name = Printable(name); strings.HasSuffix(name, m[1]) {
			ref.Notebook = name
		}
		text := strings.TrimSpace(lineOf(cell.Cell, line))
		if text == "" {
			return ""
		}
		return fmt.Sprintf("%s, line %d:\n\t%s", ref, line, text)
	}
	return ""
}
