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
	// holdTime is how long stderr is held back that looks like the end of the program: one that
	// goes on has only printed such a line.
	holdTime = time.Second
	// mostHeld is how much is held back, and how much is kept for the error.
	mostHeld = 1 << 20
)

// crashBegins finds the line in which Go's runtime begins to say why a program ends, or GoNB how it
// has ended.
var crashBegins = regexp.MustCompile(`(?m)^(?:panic: |fatal error: |exit status )`)

// crash is the end of a program's stderr from its panic on. If the cell fails that is its error's
// traceback; until it is known whether it does, it is held back. Its methods may be called from
// several goroutines.
type crash struct {
	pass func(*wire.Message)
	// wait is how long it is held back.
	wait time.Duration

	mu   sync.Mutex
	text strings.Builder
	held []*wire.Message
	// timer passes on what is held; nil if nothing is.
	timer *time.Timer
}

// take takes a message of stderr, and passes it on unless it is held back.
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

// isNew reports whether what begins is another crash than the one that is known. How the program
// has ended belongs to a panic before it, however long ago that was written.
func (c *crash) isNew(text string) bool {
	if c.timer != nil {
		return false
	}
	return !strings.HasPrefix(text, "exit status ") || !strings.Contains(c.text.String(), "\ngoroutine ")
}

// release passes on what is held: the program goes on, or has ended well.
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

// end returns what the program said at its end, and drops what of it was held back.
func (c *crash) end() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	return c.text.String()
}

// withText is a message of a stream with another text.
func withText(m *wire.Message, text string) *wire.Message {
	name, _ := stream(m)
	changed := *m
	if content, err := json.Marshal(object{"name": name, "text": text}); err == nil {
		changed.Content = content
	}
	return &changed
}
