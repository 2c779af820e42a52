package relay

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
	"gonbatch/kernel/history"
	"gonbatch/kernel/wire"
)

// execution is a running cell.
type execution struct {
	relay    *relay
	request  *wire.Message
	prepared cell.Prepared
	count    int
	// stored is set if the cell is part of the session.
	stored bool
	code   string
	crash  crash
	// callee is the function that the cell's last expression calls, if it is a call whose value
	// would be shown.
	callee string
	// newlyKept are the variables that this cell is the first to keep.
	newlyKept []string
	// page is the text that the cell wants to show in a pager.
	page json.RawMessage
}

// executed is a cell of the session.
type executed struct {
	count int
	code  string
	// id is the cell's id in the client's notebook; "" if the client doesn't send one.
	id        string
	succeeded bool
	// problem is why it failed: one line.
	problem string
}

// executeRequest is the part of an execute_request's content that is used here.
type executeRequest struct {
	Code         string `json:"code"`
	Silent       bool   `json:"silent"`
	StoreHistory *bool  `json:"store_history"`
	StopOnError  *bool  `json:"stop_on_error"`
	AllowStdin   bool   `json:"allow_stdin"`
	// Expressions are to be evaluated after the cell, by names that the client chose.
	Expressions map[string]string `json:"user_expressions"`
}

// refused answers the expressions: each would be a program of its own.
func (asked executeRequest) refused() object {
	const why = "a Go kernel evaluates no user_expressions: show the value in a cell"
	all := object{}
	for name := range asked.Expressions {
		all[name] = failure{"NotSupported", why, []string{why}}.content("error")
	}
	return all
}

// sources returns the code of the cells that succeeded, in order.
func (r *relay) sources() []string {
	sources := make([]string, 0, len(r.executed))
	for _, x := range r.executed {
		if x.succeeded {
			sources = append(sources, x.code)
		}
	}
	return sources
}

// cellID returns the id of the cell that a client executes. JupyterLab, Notebook and VS Code send
// it in the metadata.
func cellID(request *wire.Message) string {
	var metadata struct {
		ID string `json:"cellId"`
	}
	_ = json.Unmarshal(request.Metadata, &metadata) // other clients have other metadata
	return metadata.ID
}

func isTrue(value *bool) bool { return value == nil || *value }

func (r *relay) execute(ctx context.Context, request *wire.Message) {
	r.setRunning(request)
	defer r.setChanged()
	defer r.finish(ctx, request)
	var asked executeRequest
	if err := json.Unmarshal(request.Content, &asked); err != nil {
		f := failure{"ProtocolError", "execute_request: " + err.Error(), []string{err.Error()}}
		r.reply(r.front.shell, request, "execute_reply", f.content("error"))
		return
	}
	e := &execution{relay: r, request: request, code: gocell.TypedParameters(gocell.PlainLines(asked.Code), r.sources()), crash: crash{pass: r.pass, wait: holdTime}}
	e.prepared = cell.Prepare(e.code, r.opts.StatusProgram, cellID(request))
	r.begin(e, asked)
	if e.stored {
		r.executed = append(r.executed, executed{count: e.count, code: e.code, id: cellID(request)})
	}
	e.tellNotes(asked.Silent)
	e.prepareKeep()
	e.noteEnviron()
	e.prepareRun()
	e.prepareValue()
	f, ended := e.run(ctx, asked)
	if ended {
		e.died(ctx, asked)
		return
	}
	if e.stored {
		last := &r.executed[len(r.executed)-1]
		last.succeeded, last.problem = f == nil, f.line()
	}
	if f == nil {
		r.reply(r.front.shell, request, "execute_reply", object{
			"status": "ok", "execution_count": e.count, "payload": e.payload(), "user_expressions": asked.refused(),
		})
		return
	}
	r.fail(request, asked, e.count, *f)
	if isTrue(asked.StopOnError) {
		r.abort()
	}
}

// run runs the cell: this kernel's magics, then GoNB. It returns why the cell failed, if it did,
// and whether the kernel is ending.
func (e *execution) run(ctx context.Context, asked executeRequest) (f *failure, ended bool) {
	r := e.relay
	if f = e.runMagics(ctx); f != nil || r.interrupted.Load() {
		// GoNB still counts the cell.
		e.prepared.Code, e.prepared.Commands = "", nil
	}
	begin, built := time.Now(), e.lastBuild()
	stopInput := e.feedInput(ctx, asked.AllowStdin)
	reply := r.callBack(ctx, e.request, e.content(asked), e.onPublished)
	stopInput()
	if reply == nil {
		return nil, true
	}
	if failed := e.failure(reply); f == nil {
		f = failed
	}
	if f != nil && e.lastBuild().Equal(built) { // Without a program, GoNB forgets the cell's declarations too.
		r.unkeep(e.newlyKept)
	}
	e.crash.release()
	e.tellUnsaved()
	e.showValue(f == nil && !asked.Silent)
	e.tellTime(begin, time.Now())
	return f, false
}

// begin counts the cell, announces it to the clients and records it.
func (r *relay) begin(e *execution, asked executeRequest) {
	store := isTrue(asked.StoreHistory) && !asked.Silent
	if store {
		r.count++
	}
	e.count, e.stored = r.count, store
	if !asked.Silent {
		r.publish(e.request, "execute_input", object{"code": asked.Code, "execution_count": e.count})
	}
	if store && r.history != nil {
		if err := r.history.Add(history.Entry{Line: e.count, Source: asked.Code}); err != nil {
			r.log(err)
		}
	}
}

// tellNotes prints the remarks about the cell.
func (e *execution) tellNotes(silent bool) {
	if silent || e.prepared.Err != nil {
		return
	}
	for _, note := range e.prepared.Notes {
		e.relay.publish(e.request, "stream", object{"name": "stderr", "text": note + "\n"})
	}
}

// content returns the request's content for GoNB, which needs all fields, whatever the client
// sends. If the cell has an unknown magic, nothing runs, but GoNB counts the cell.
func (e *execution) content(asked executeRequest) json.RawMessage {
	code := e.prepared.Code
	if e.prepared.Err != nil {
		code = ""
	}
	text, err := json.Marshal(object{
		"code": code, "silent": asked.Silent, "store_history": isTrue(asked.StoreHistory), "allow_stdin": asked.AllowStdin,
		"stop_on_error": isTrue(asked.StopOnError), "user_expressions": object{},
	})
	if err != nil {
		return e.request.Content
	}
	return text
}

// onPublished passes on the cell's output. The relay publishes its own execute_input and error.
func (e *execution) onPublished(m *wire.Message) {
	switch m.Header.Type {
	case "execute_input", "error":
		return
	case "stream":
		name, text := stream(m)
		if e.clear(name, text) {
			return
		}
		if name == "stderr" {
			e.crash.take(m)
			return
		}
	case "display_data":
		if strings.TrimSpace(e.code) == gocell.Help {
			addHelp(m)
			e.page = m.Content
		}
	}
	e.relay.pass(m)
}

func stream(m *wire.Message) (name, text string) {
	var content struct{ Name, Text string }
	if json.Unmarshal(m.Content, &content) != nil {
		return "", ""
	}
	return content.Name, content.Text
}

func (e *execution) payload() []any {
	var content struct {
		Data map[string]any `json:"data"`
	}
	if e.page == nil || json.Unmarshal(e.page, &content) != nil {
		return []any{}
	}
	if _, ok := content.Data["text/plain"]; !ok {
		content.Data["text/plain"] = content.Data["text/markdown"]
	}
	return []any{object{"source": "page", "data": content.Data, "start": 0}}
}

// abort answers the waiting cells, because a cell before them failed.
func (r *relay) abort() {
	for _, m := range r.queue.take("execute_request") {
		r.status(m, "busy")
		r.reply(r.front.shell, m, "execute_reply", object{"status": "aborted", "execution_count": r.count})
		r.status(m, "idle")
	}
}
