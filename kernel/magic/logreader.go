package magic

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

const (
	// tailLines is how many of the last lines of a log are kept, each up to lineBytes long.
	tailLines, lineBytes = 8, 512
	// endBytes is how much is read at once: of a very long log, only the end.
	endBytes = 1 << 20
)

// logReader reads a rank's log while it grows. Each time it reads only what is new.
type logReader struct {
	file   string
	offset int64
	part   string // a line that is still being written

	// lines are the last lines of the log, and progress is its last progress report.
	lines    []string
	progress progress
}

// progress is a program's progress, according to its own output.
type progress struct {
	Done, Total int64
	// Text is the line with the progress.
	Text string
}

var progressLine = regexp.MustCompile(`\bstep \d+/\d+\b`)

// read reads the new part of the log. A log that doesn't exist yet has no lines.
func (l *logReader) read() {
	f, err := os.Open(l.file)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return
	}
	if info.Size() < l.offset {
		*l = logReader{file: l.file} // The rank was started again.
	}
	if info.Size()-l.offset > endBytes {
		l.offset, l.part = info.Size()-endBytes, ""
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, l.offset, info.Size()-l.offset)) // The next look tries again.
	l.offset += int64(len(text))
	lines := strings.Split(l.part+string(text), "\n")
	l.part = lines[len(lines)-1]
	if len(l.part) > endBytes {
		l.part = l.part[len(l.part)-endBytes:]
	}
	for _, line := range lines[:len(lines)-1] {
		l.line(line)
	}
}

func (l *logReader) line(line string) {
	line = lastVersion(line)
	if p, ok := readProgress(line); ok {
		l.progress = p
	}
	l.lines = append(l.lines, line)
	if len(l.lines) > tailLines {
		l.lines = l.lines[1:]
	}
}

// tail returns the last lines of the log, including one that is still being written.
func (l *logReader) tail() []string {
	lines := l.lines
	if part := lastVersion(l.part); part != "" {
		lines = append(lines[:len(lines):len(lines)], part)
	}
	return lines[max(0, len(lines)-tailLines):]
}

// lastVersion returns the visible rest of a line that a progress bar has overwritten, as text.
func lastVersion(line string) string {
	line = strings.TrimSuffix(line, "\r")
	line = strings.ToValidUTF8(line[strings.LastIndex(line, "\r")+1:], "\uFFFD")
	if len(line) > lineBytes {
		line = strings.ToValidUTF8(line[:lineBytes], "") + " …"
	}
	return line
}

func readProgress(line string) (progress, bool) {
	found := progressLine.FindString(line)
	if found == "" {
		return progress{}, false
	}
	p := progress{Text: line}
	_, err := fmt.Sscanf(found, "step %d/%d", &p.Done, &p.Total)
	return p, err == nil && p.Total > 0
}

// part is the finished part, between 0 and 1.
func (p progress) part() float64 {
	if p.Total == 0 {
		return 0
	}
	return min(1, max(0, float64(p.Done)/float64(p.Total)))
}
