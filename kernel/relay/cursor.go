package relay

import (
	"encoding/json"
	"strings"

	"gonbatch/internal/gocell"
)

// cursor is a place in a cell, as in complete_request and inspect_request: before character At of
// Code.
type cursor struct {
	Code string `json:"code"`
	At   int    `json:"cursor_pos"`
	// removed is the number of carriage returns before the place in the client's code.
	removed int
}

func readCursor(content json.RawMessage) (cursor, error) {
	var c cursor
	if err := json.Unmarshal(content, &c); err != nil {
		return c, err
	}
	runes := []rune(c.Code)
	at := min(max(c.At, 0), len(runes))
	before, after := string(runes[:at]), string(runes[at:])
	if strings.HasPrefix(after, "\n") {
		before = strings.TrimSuffix(before, "\r")
	}
	c.At = len([]rune(gocell.PlainLines(before)))
	c.Code, c.removed = gocell.PlainLines(c.Code), at-c.At
	return c, nil
}

// row is the index of the cursor's line.
func (c cursor) row() int { return strings.Count(string([]rune(c.Code)[:c.At]), "\n") }

// line returns the cursor's line up to the cursor, and the rest of the line.
func (c cursor) line() (before, after string) {
	runes := []rune(c.Code)
	at := min(max(c.At, 0), len(runes))
	before, after = string(runes[:at]), string(runes[at:])
	before = before[strings.LastIndex(before, "\n")+1:]
	after, _, _ = strings.Cut(after, "\n")
	return before, after
}
