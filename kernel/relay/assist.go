package relay

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/assist"
	"gonbatch/kernel/wire"
)

// Assistant completes and explains Go code. Its methods block, and may be called while a cell runs.
type Assistant interface {
	Complete(ctx context.Context, code string, at int) (assist.Completion, error)
	Inspect(ctx context.Context, code string, at int) (markdown string, err error)
	// Warm prepares for the session's current declarations.
	Warm(ctx context.Context)
}

var _ Assistant = (*assist.Assistant)(nil)

// warmPause is how long a new session waits for its first cell before it warms gopls.
const warmPause = 300 * time.Millisecond

// help answers questions about code, one after another, while cells run. It ends with ctx.
func (r *relay) help(ctx context.Context) {
	for {
		m := r.questions.next(ctx)
		if m == nil {
			return
		}
		r.forward(ctx, m)
	}
}

// warm lets the Assistant prepare whenever a cell has changed the session.
func (r *relay) warm(ctx context.Context) {
	select {
	case <-r.ready:
	case <-ctx.Done():
		return
	}
	// A cell that was waiting for the kernel goes first.
	select {
	case <-time.After(warmPause):
	case <-ctx.Done():
	}
	for {
		if !r.isRunning() {
			r.opts.Assist.Warm(ctx)
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return
		}
	}
}

// setChanged signals that a cell has changed the session.
func (r *relay) setChanged() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// askAssistant answers a question about Go code.
func (r *relay) askAssistant(ctx context.Context, request *wire.Message) object {
	c, err := readCursor(request.Content)
	if err != nil {
		return failure{"ProtocolError", err.Error(), []string{err.Error()}}.content("error")
	}
	select {
	case <-r.ready:
	case <-ctx.Done():
	}
	if request.Header.Type == "inspect_request" {
		text, err := r.opts.Assist.Inspect(ctx, c.Code, c.At)
		if err != nil {
			r.log(err)
		}
		data := object{}
		if text != "" {
			data = object{"text/markdown": text, "text/plain": text}
		}
		return object{"status": "ok", "found": text != "", "data": data, "metadata": object{}}
	}
	done, err := r.opts.Assist.Complete(ctx, c.Code, c.At)
	if err != nil {
		r.log(err)
	}
	done.Start, done.End = done.Start+c.removed, done.End+c.removed
	return completeReply(done)
}

// completeReply returns the content of a complete_reply, with the matches' types where JupyterLab
// and IPython look for them.
func completeReply(done assist.Completion) object {
	texts, types := []string{}, []object{}
	for _, m := range done.Matches {
		texts = append(texts, m.Text)
		types = append(types, object{"start": done.Start, "end": done.End, "text": m.Text, "type": m.Type, "signature": m.Signature})
	}
	return object{
		"status": "ok", "matches": texts, "cursor_start": done.Start, "cursor_end": done.End,
		"metadata": object{"_jupyter_types_experimental": types},
	}
}

// assist answers requests about a magic, which GoNB would not; it ignores other requests.
func (r *relay) assist(ctx context.Context, request *wire.Message) (reply object, ok bool) {
	c, err := readCursor(request.Content)
	if err != nil {
		return nil, false
	}
	before, after := c.line()
	before = gocell.Trim(before)
	if !strings.HasPrefix(before, "%") || gocell.Parse(c.Code).Kinds[c.row()] == gocell.BodyLine {
		return nil, false
	}
	words := strings.Split(before, " ")
	if request.Header.Type == "inspect_request" {
		name, _, _ := strings.Cut(before+after, " ")
		m := gocell.Lookup(name)
		if m == nil {
			return nil, false
		}
		return object{"status": "ok", "found": true, "data": object{"text/plain": m.Usage + "\n" + m.Help}, "metadata": object{}}, true
	}
	last := words[len(words)-1]
	matches := gocell.Names(last)
	if len(words) > 1 {
		matches = r.arguments(ctx, words)
	}
	if matches == nil {
		matches = []string{}
	}
	return object{
		"status": "ok", "matches": matches, "cursor_start": c.At + c.removed - len([]rune(last)), "cursor_end": c.At + c.removed, "metadata": object{},
	}, true
}

// arguments completes the last word of a magic.
func (r *relay) arguments(ctx context.Context, words []string) (matches []string) {
	m := gocell.Lookup(words[0])
	if m == nil {
		return nil
	}
	for _, word := range m.Words {
		if strings.HasPrefix(word, words[len(words)-1]) {
			matches = append(matches, word)
		}
	}
	if m.SubmitFlags {
		matches = append(matches, r.opts.Magics.Complete(ctx, words[1:])...)
	}
	return matches
}

// addHelp puts the help for the magics that GoNB lacks before GoNB's own help.
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
		content.Data["text/markdown"] = gocell.HelpText() + text
	}
	if text, err := json.Marshal(object{"data": content.Data, "metadata": content.Metadata, "transient": content.Transient}); err == nil {
		m.Content = text
	}
}
