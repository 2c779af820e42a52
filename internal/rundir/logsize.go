package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// LogSizes returns the path of the file with the size of each log when the run's last start began.
// All starts append to the same logs, and the output of an earlier one does not explain a later
// failure.
func (d Dir) LogSizes() string { return d.join("log-sizes") }

// NoteLogs writes LogSizes. Call it when a start begins.
func NoteLogs(d Dir) error {
	logs, err := os.ReadDir(d.Logs())
	if err != nil {
		return fmt.Errorf("logs of run %s: %w", d.Name(), err)
	}
	var text []byte
	for _, log := range logs {
		if info, err := log.Info(); err == nil {
			text = fmt.Appendf(text, "%d %s\n", info.Size(), log.Name())
		}
	}
	return WriteFileAtomic(d.LogSizes(), text, 0o600)
}

// StartOfLog returns the offset at which the run's last start begins in one of its logs.
func StartOfLog(d Dir, log string) int64 {
	text, err := ReadFile(d.LogSizes())
	if err != nil {
		return 0 // The run has not begun.
	}
	for line := range strings.Lines(string(text)) {
		size, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == filepath.Base(log) {
			n, _ := strconv.ParseInt(size, 10, 64) // 0 if a full disk has truncated the line.
			return n
		}
	}
	return 0
}

// LastLines returns the last n lines of a log's text, as a terminal shows them: what follows a
// carriage return is written over what precedes it.
func LastLines(text string, n int) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return lines
}
