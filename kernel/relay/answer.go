package relay

import (
	"encoding/json"
	"fmt"
	"runtime"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/history"
	"gonbatch/kernel/wire"
)

// object is the content of a message.
type object map[string]any

// answer answers a request that doesn't need GoNB.
func (r *relay) answer(s *socket, request *wire.Message) {
	r.status(request, "busy")
	defer r.setIdle(request)
	switch request.Header.Type {
	case "kernel_info_request":
		r.reply(s, request, "kernel_info_reply", kernelInfo())
	case "is_complete_request":
		r.reply(s, request, "is_complete_reply", r.isComplete(request))
	case "history_request":
		r.reply(s, request, "history_reply", r.historyReply(request))
	case "comm_info_request":
		r.reply(s, request, "comm_info_reply", object{"status": "ok", "comms": object{}})
	case "connect_request": // Deprecated, and some clients wait for the answer.
		c := r.opts.Front
		r.reply(s, request, "connect_reply", object{
			"shell_port": c.Shell, "iopub_port": c.IOPub, "stdin_port": c.Stdin, "control_port": c.Control, "hb_port": c.Heartbeat,
		})
	case "interrupt_request":
		r.interrupt()
		r.reply(s, request, "interrupt_reply", object{"status": "ok"})
	case "shutdown_request":
		r.shutdown(s, request)
	default:
		r.log(fmt.Errorf("request %q is not known", request.Header.Type))
	}
}

func (r *relay) shutdown(s *socket, request *wire.Message) {
	var content struct {
		Restart bool `json:"restart"`
	}
	if err := json.Unmarshal(request.Content, &content); err != nil {
		r.log(err)
	}
	reply := object{"status": "ok", "restart": content.Restart}
	r.reply(s, request, "shutdown_reply", reply)
	r.publish(request, "shutdown_reply", reply)
	r.stop()
}

func kernelInfo() object {
	return object{
		"status": "ok", "protocol_version": wire.Version,
		"implementation": "gonbatch", "implementation_version": "0.1.0",
		"banner":   "gonbatch: Go notebooks that train on clusters, built on GoNB\nGo " + runtime.Version(),
		"debugger": false, "supported_features": []string{},
		"help_links": []object{
			{"text": "GoNB", "url": "https://github.com/janpfeifer/gonb"}, {"text": "GoMLX", "url": "https://github.com/gomlx/gomlx"},
		},
		"language_info": object{
			"name": "go", "version": runtime.Version(), "mimetype": "text/x-go", "file_extension": ".go",
			"pygments_lexer": "go", "codemirror_mode": "go", "nbconvert_exporter": "script",
		},
	}
}

func (r *relay) isComplete(request *wire.Message) object {
	var content struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(request.Content, &content); err != nil {
		r.log(err)
		return object{"status": "unknown"}
	}
	status, indent := gocell.Check(gocell.PlainLines(content.Code))
	if status == gocell.Incomplete {
		return object{"status": status, "indent": indent}
	}
	return object{"status": status}
}

func (r *relay) historyReply(request *wire.Message) object {
	var q struct {
		Output  bool   `json:"output"`
		Type    string `json:"hist_access_type"`
		Session int    `json:"session"`
		Start   int    `json:"start"`
		Stop    int    `json:"stop"`
		N       int    `json:"n"`
		Pattern string `json:"pattern"`
		Unique  bool   `json:"unique"`
	}
	var entries []history.Entry
	err := json.Unmarshal(request.Content, &q)
	switch {
	case err != nil || r.history == nil:
	case q.Type == "tail":
		entries, err = r.history.Tail(q.N)
	case q.Type == "range":
		entries, err = r.history.Range(q.Session, q.Start, q.Stop)
	case q.Type == "search":
		entries, err = r.history.Search(q.Pattern, q.N, q.Unique)
	default:
		err = fmt.Errorf("hist_access_type %q: want tail, range or search", q.Type)
	}
	if err != nil {
		r.log(err)
		return failure{"HistoryError", err.Error(), []string{err.Error()}}.content("error")
	}
	list := [][]any{}
	for _, e := range entries {
		if q.Output {
			// Outputs are not stored: a notebook has its own.
			list = append(list, []any{e.Session, e.Line, []any{e.Source, nil}})
		} else {
			list = append(list, []any{e.Session, e.Line, e.Source})
		}
	}
	return object{"status": "ok", "history": list}
}

// onComm passes a comm's message to GoNB, if there is one, except for the question by which a front
// end asks for all widgets: it waits until that comm is closed, and GoNB leaves it open.
func (r *relay) onComm(m *wire.Message) {
	var content struct {
		ID     string `json:"comm_id"`
		Target string `json:"target_name"`
	}
	if err := json.Unmarshal(m.Content, &content); err != nil || m.Header.Type != "comm_open" || content.Target != "jupyter.widget.control" {
		if r.back != nil {
			r.sendBack(r.back.shell, m)
		}
		return
	}
	r.status(m, "busy")
	r.publish(m, "comm_close", object{"comm_id": content.ID, "data": object{}})
	r.status(m, "idle")
}
