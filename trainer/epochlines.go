package trainer

import (
	"fmt"
	"strings"
)

// epochLines is the text that a notebook shows for a training run: one line for each of the last
// epochs.
type epochLines struct {
	lines   []string
	epoch   int // Of the last line.
	dropped int
}

// mostEpochLines is the maximum number of epochs shown: every update sends all lines again.
const mostEpochLines = 100

// put sets or replaces the line of an epoch.
func (e *epochLines) put(epoch int, line string) {
	if len(e.lines) > 0 && epoch == e.epoch {
		e.lines[len(e.lines)-1] = line
		return
	}
	e.epoch, e.lines = epoch, append(e.lines, line)
	if len(e.lines) > mostEpochLines {
		e.lines = e.lines[1:]
		e.dropped++
	}
}

// String returns the text of all lines.
func (e *epochLines) String() string {
	text := strings.Join(e.lines, "\n")
	if e.dropped > 0 {
		text = fmt.Sprintf("... %d earlier epochs\n", e.dropped) + text
	}
	return text
}
