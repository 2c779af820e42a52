package magic

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

const (
	// tailLines is how many of the last lines of a log are kept, each up to lineBytes long.
	tailLines, lineBytes = 8, 512
	// headBytes and endBytes are how much of a very long log is read at first, from its beginning
	// and its end.
	headBytes, endBytes = 1 << 20, 1 << 20
)

// logReader reads a rank's log while it grows. Each time it reads only what is new.
type logReader struct {
	file   string
	offset int64
	part   string // a line that is still being written

	// lines are the last lines of the log, place is where the rank reports to run, and progress is
	// its last progress report.
	lines    []string
	place    place
	progress progress
}

// place is where a rank runs, according to its log.
type place struct{ Size, Devices, Host, CPUs string }

// progress is a program's progress, according to its own output.
type progress struct {
	Done, Total int64
	// Text is the line with the progress.
	Text string
}

var (
	placeLine    = regexp.MustCompile(`^gonbatch: rank \d+ of (\d+)[^,]*, .*?(\d+ \S+ devices?) on (\S+), CPUs (\d+(?:[-,]\d+)*(?: \([^)]*\))?)`)
	progressLine = regexp.MustCompile(`\bstep (\d+)/(\d+)\b`)
)

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
	if info.Size()-l.offset > headBytes+endBytes {
		l.take(f, l.offset+headBytes)
		l.offset, l.part = info.Size()-endBytes, ""
	}
	l.take(f, info.Size())
}

// take reads up to an offset.
func (l *logReader) take(f *os.File, end int64) {
	text, err := io.ReadAll(io.NewSectionReader(f, l.offset, end-l.offset))
	l.offset += int64(len(text))
	if err != nil && len(text) == 0 {
		return
	}
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
	if found := placeLine.FindStringSubmatch(line); found != nil {
		l.place = place{Size: found[1], Devices: found[2], Host: found[3], CPUs: found[4]}
	}
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
	found := progressLine.FindStringSubmatch(line)
	if found == nil {
		return progress{}, false
	}
	done, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return progress{}, false
	}
	total, err := strconv.ParseInt(found[2], 10, 64)
	return progress{Done: done, Total: total, Text: line}, err == nil && total > 0
}

// part is the finished part, between 0 and 1.
func (p progress) part() float64 {
	if p.Total == 0 {
		return 0
	}
	return min(1, max(0, float64(p.Done)/float64(p.Total)))
}
