package kernel

import (
	"fmt"
	"io"
	"regexp"
	"sync"
)

// tailSize is how much of GoNB's log is kept.
const tailSize = 16 << 10

// tailLog keeps the end of the text written to it. GoNB logs each cell, and each error in a cell
// with a stack trace: in a terminal, such as jupyter console's, that would appear between the
// user's lines.
type tailLog struct {
	mu   sync.Mutex
	text []byte
}

var _ io.Writer = (*tailLog)(nil)

// Write never fails.
func (l *tailLog) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, data...)
	if surplus := len(l.text) - tailSize; surplus > 0 {
		l.text = append(l.text[:0], l.text[surplus:]...)
	}
	return len(data), nil
}

// showIn writes the kept text to another log.
func (l *tailLog) showIn(log io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = log.Write(l.text)
}

// lastWords finds the line in which Go's runtime says why a program ends, or GoNB's log, with the
// error before it.
var lastWords = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*$|(?:^E\d{4} [^\]\n]*\] .*\n(?:(?:(?:[^IWEF\n]|[IWEF][^\d\n]).*)?\n)*)?^F\d{4} [^\]\n]*\] .*$`)

// logPrefix is what GoNB's log has before its words.
var logPrefix = regexp.MustCompile(`(?m)^[EF]\d{4} [^\]\n]*\] (?:\x1b\[[\d;]*m\[\w*\]\x1b\[0m )?`)

// reason says why a process ended, given its exit error.
func (l *tailLog) reason(ended error) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch all := lastWords.FindAll(l.text, -1); {
	case all != nil:
		return fmt.Sprintf("%s (%v)", logPrefix.ReplaceAll(all[len(all)-1], nil), ended)
	case ended.Error() == "signal: killed":
		return "it was killed, as the system does when there is no memory left"
	}
	return ended.Error()
}
