package relay

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"

	"gonbatch/kernel/wire"
)

const (
	// holdTime is how long the relay holds back stderr output that looks like the end of the
	// program. If the program continues, it has only printed such a line.
	holdTime = time.Second
	// mostHeld is how many bytes are held back, and how many are kept for the error.
	mostHeld = 1 << 20
)

// crashBegins finds the line in which Go's runtime begins to print why a program ends, or GoNB how
// it has ended.
var crashBegins = regexp.MustCompile(`(?m)^(?:panic: |fatal error: |exit status )`)

// crash is the end of a program's stderr from its panic on. If the cell fails, it becomes the
// traceback of the cell's error; until the outcome is known, it is held back. Its methods may be
// called concurrently.
type crash struct {
	pass func(*wire.Message)
	// wait is how long the output is held back.
	wait time.Duration

	mu   sync.Mutex
	text strings.Builder
	held []*wire.Message
	// timer passes on the held output; nil if nothing is held.
	timer *time.Timer
}

// take takes a message of stderr, and passes it on or holds it back.
func (c *crash) take(m *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, text := stream(m)
	if place := crashBegins.FindStringIndex(text); place != nil && c.isNew(text[place[0]:]) {
		if place[0] > 0 {
			c.pass(withText(m, text[:place[0]]))
			text = text[place[0]:]
			m = withText(m, text)
		}
		c.text.Reset()
		c.timer = time.AfterFunc(c.wait, c.release)
	}
	if c.timer == nil && c.text.Len() == 0 {
		c.pass(m)
		return
	}
	c.text.WriteString(text[:min(len(text), mostHeld-c.text.Len())])
	c.held = append(c.held, m)
	if c.timer == nil || c.text.Len() == mostHeld {
		c.releaseHeld()
	}
}

// isNew reports whether text begins a new crash. An exit status belongs to the panic before it,
// however long ago that was printed.
func (c *crash) isNew(text string) bool {
	if c.timer != nil {
		return false
	}
	return !strings.HasPrefix(text, "exit status ") || !strings.Contains(c.text.String(), "\ngoroutine ")
}

// release passes on the held output: the program continues, or has ended well.
func (c *crash) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseHeld()
}

func (c *crash) releaseHeld() {
	for _, m := range c.held {
		c.pass(m)
	}
	c.forget()
}

func (c *crash) forget() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.held, c.timer = nil, nil
}

// end returns the program's last output, and drops the held part.
func (c *crash) end() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	return c.text.String()
}

// withText returns a copy of a stream message with another text.
func withText(m *wire.Message, text string) *wire.Message {
	name, _ := stream(m)
	changed := *m
	if content, err := json.Marshal(object{"name": name, "text": text}); err == nil {
		changed.Content = content
	}
	return &changed
}
