package relay

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gonbatch/kernel/cell"
	"gonbatch/kernel/magic"
	"gonbatch/kernel/wire"
)

// cursor is a place in a cell, as complete_request and inspect_request name it: before character At of Code.
type cursor struct {
	Code string `json:"code"`
	At   int    `json:"cursor_pos"`
}

// line is the cursor's line up to the cursor, and the rest of it.
func (c cursor) line() (before, after string) {
	runes := []rune(c.Code)
	at := min(max(c.At, 0), len(runes))
	before, after = string(runes[:at]), string(runes[at:])
	before = before[strings.LastIndex(before, "\n")+1:]
	after, _, _ = strings.Cut(after, "\n")
	return before, after
}

// assist answers requests about a magic, which GoNB would not; other requests it leaves alone.
func (r *relay) assist(ctx context.Context, request *wire.Message) (reply object, ok bool) {
	var c cursor
	if json.Unmarshal(request.Content, &c) != nil {
		return nil, false
	}
	before, after := c.line()
	before = strings.TrimPrefix(before, "//gonb:")
	if !strings.HasPrefix(before, "%") {
		return nil, false
	}
	if request.Header.Type == "inspect_request" {
		return inspectMagic(before, after)
	}
	words := strings.Split(before, " ")
	last := words[len(words)-1]
	var matches []string
	switch {
	case len(words) == 1:
		matches = magicNames(last)
	case words[0] == "%submit" || words[0] == "%%submit":
		if r.opts.Magics != nil {
			matches = r.opts.Magics.Complete(ctx, words[1:])
		}
	default:
		return nil, false
	}
	if matches == nil {
		matches = []string{}
	}
	return object{
		"status": "ok", "matches": matches, "cursor_start": c.At - len([]rune(last)), "cursor_end": c.At, "metadata": object{},
	}, true
}

func magicNames(prefix string) []string {
	names := slices.Concat(cell.Names(), slices.Collect(maps.Keys(magic.Help)))
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !strings.HasPrefix(name, prefix) })
}

// inspectMagic tells of this kernel's own magics; GoNB tells of its own.
func inspectMagic(before, after string) (object, bool) {
	name, _, _ := strings.Cut(before+after, " ")
	text, ok := magic.Help[name]
	return object{"status": "ok", "found": true, "data": object{"text/plain": text}, "metadata": object{}}, ok
}

// addHelp puts the help on this kernel's magics before GoNB's.
func addHelp(m *wire.Message) {
	var content struct {
		Data      map[string]any `json:"data"`
		Metadata  object         `json:"metadata"`
		Transient object         `json:"transient"`
	}
	if json.Unmarshal(m.Content, &content) != nil {
		return
	}
	if text, ok := content.Data["text/markdown"].(string); ok {
		content.Data["text/markdown"] = magic.HelpText() + text
	}
	if text, err := json.Marshal(object{"data": content.Data, "metadata": content.Metadata, "transient": content.Transient}); err == nil {
		m.Content = text
	}
}
