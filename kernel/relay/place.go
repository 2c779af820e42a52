package relay

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"gonbatch/kernel/cell"
)

// composedLine matches a line of the file that GoNB composed, in a panic's traceback. GoNB's own
// note of the cell precedes it if GoNB recognized the place in the pieces in which it received the
// program's output.
var composedLine = regexp.MustCompile(`(\[\[ Cell[^\n]*\]\]\S* )?` + composedFile)

// composedFile matches the path and the line.
const composedFile = `(/\S*/gonb_\w+/main(?:_test)?\.go):(\d+)`

// namePlaces puts the cell and its line before each line of the composed file that GoNB has not
// marked.
func (e *execution) namePlaces(text string) string {
	return composedLine.ReplaceAllStringFunc(text, func(found string) string {
		parts := composedLine.FindStringSubmatch(found)
		if parts[1] != "" {
			return found
		}
		number, err := strconv.Atoi(parts[3])
		composed, readErr := os.ReadFile(parts[2])
		if err != nil || readErr != nil {
			return found
		}
		count, line := e.placeOf(strings.Split(string(composed), "\n"), number-1)
		if line == 0 {
			return found
		}
		return fmt.Sprintf("\x1b[7m[[ Cell [%d] Line %d ]]\x1b[0m %s", count, line, found)
	})
}

// placeOf finds line i of the composed file in the cells of the session, the last cell first. It
// returns line 0 if no cell has it.
func (e *execution) placeOf(composed []string, i int) (count, line int) {
	if i < 0 || i >= len(composed) {
		return 0, 0
	}
	cells := e.relay.executed
	for at := len(cells) - 1; at >= 0; at-- {
		if line = alignedLine(strings.Split(cells[at].code, "\n"), composed, i); line > 0 {
			return cells[at].count, line
		}
	}
	return 0, 0
}

// alignedLine returns the line of the cell, from 1, that is line i of the file. If several are
// equal, it is the one with the most equal lines before it.
func alignedLine(lines, file []string, i int) int {
	best, line := 0, 0
	for at := range lines {
		equal := 0
		for equal <= at && equal <= i && bare(lines[at-equal]) == bare(file[i-equal]) {
			equal++
		}
		if equal > best {
			best, line = equal, at+1
		}
	}
	return line
}

// bare returns a line as the user wrote it, without surrounding space.
func bare(line string) string { return strings.TrimSpace(cell.CleanMarks(line)) }
