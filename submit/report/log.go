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
	for line := range bytes.Lines(text) {
		l.rest = append(l.rest, line...)
		whole, ok := bytes.CutSuffix(l.rest, []byte("\n"))
		if !ok {
			break
		}
		if err := l.report(whole); err != nil {
			return 0, err
		}
		l.rest = l.rest[:0]
	}
	return len(text), nil
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
