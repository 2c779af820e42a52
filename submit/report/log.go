package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Line is a line of a rank's log, without its newline.
type Line struct {
	Rank int    `json:"rank"`
	Line string `json:"line"`
}

// Text writes the line as it is in the log.
func (l Line) Text(w io.Writer) error {
	_, err := fmt.Fprintln(w, l.Line)
	return err
}

// LineWriter reports each line that is written to it as JSON. Close reports a last line without a
// newline.
type LineWriter struct {
	To   io.Writer
	Rank int

	rest []byte
}

// Write writes a part of the log.
func (l *LineWriter) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		if err := l.report(line); err != nil {
			return 0, err
		}
		l.rest = rest
	}
}

// Close reports an unfinished last line.
func (l *LineWriter) Close() error {
	if len(l.rest) == 0 {
		return nil
	}
	line := l.rest
	l.rest = nil
	return l.report(line)
}

func (l *LineWriter) report(line []byte) error {
	return Write(l.To, true, Line{Rank: l.Rank, Line: strings.ToValidUTF8(string(line), "\ufffd")})
}
