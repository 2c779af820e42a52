package relay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// endedCommands reads the exit statuses of the cell's shell commands, by line, and clears them.
func (r *relay) endedCommands() map[int]int {
	ended := map[int]int{}
	text, err := os.ReadFile(r.opts.StatusFile)
	if err != nil || len(text) == 0 {
		return ended
	}
	if err := os.Truncate(r.opts.StatusFile, 0); err != nil {
		r.log(err)
	}
	for line := range strings.Lines(string(text)) {
		var number, status int
		if _, err := fmt.Sscanf(line, "%d %d", &number, &status); err == nil {
			ended[number] = status
		}
	}
	return ended
}

// commandFailure describes the first shell command of the cell that failed, or returns nil. A
// command that left no exit status failed too: it was killed together with its wrapper, or the
// wrapper could not run or write.
func (e *execution) commandFailure(ended map[int]int) *failure {
	if e.prepared.AllowFail {
		return nil
	}
	for _, line := range e.prepared.Commands {
		status, ok := ended[line]
		if ok && status == 0 {
			continue
		}
		reason := fmt.Sprintf("exit status %d", status)
		if !ok {
			reason = e.relay.unrecorded()
		}
		return e.failedAt(line, reason)
	}
	return nil
}

// unrecorded says why the end of a command is not known.
func (r *relay) unrecorded() string {
	dir := filepath.Dir(r.opts.CellDir)
	if isFull(dir) {
		return "it is not known how it ended: " + fullRemedy(dir)
	}
	return fmt.Sprintf("it is not known how it ended: it was killed, or no programs can run in the session's folder, %s", dir)
}

func (e *execution) failedAt(number int, reason string) *failure {
	line := e.lineOf(e.count, number)
	return &failure{"CommandFailed", line + ": " + reason, []string{
		e.title(number), line, fmt.Sprintf("%s%s%s (%%allow_fail in the cell lets its commands fail)", red, reason, plain),
	}}
}
