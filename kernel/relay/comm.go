package relay

import (
	"encoding/json"
	"fmt"

	"gonbatch/kernel/widget"
	"gonbatch/kernel/wire"
)

// newWidgets returns the hub of the session's own widgets. Its messages belong to no request and
// may come at any time.
func (r *relay) newWidgets() *widget.Hub {
	return widget.NewHub(func(messageType string, content, metadata map[string]any) {
		m, err := wire.New(messageType, content)
		r.publishComm(m, err, metadata)
	})
}

// publishComm publishes a comm's message, unless err says that it could not be made.
func (r *relay) publishComm(m *wire.Message, err error, metadata map[string]any) {
	if err == nil {
		m.Identities = [][]byte{[]byte(m.Header.Type)}
		m.Metadata, err = json.Marshal(metadata)
	}
	if err == nil {
		err = r.front.iopub.send(m)
	}
	if err != nil {
		r.log(fmt.Errorf("publish a comm's message: %w", err))
	}
}

// onComm handles a message of a comm: the session's own widgets get theirs, GoNB gets all others.
func (r *relay) onComm(m *wire.Message) {
	answer := func(messageType string, content, metadata map[string]any) {
		answer, err := m.Publish(messageType, content)
		r.publishComm(answer, err, metadata)
	}
	if !r.widgets.Handle(m.Header.Type, m.Content, answer) {
		r.sendBack(r.back.shell, m)
		return
	}
	r.status(m, "busy")
	r.status(m, "idle")
}

// commInfo returns the content of a comm_info_reply.
func (r *relay) commInfo(request *wire.Message) object {
	var content struct {
		Target string `json:"target_name"`
	}
	if err := json.Unmarshal(request.Content, &content); err != nil {
		r.log(err)
	}
	return object{"status": "ok", "comms": r.widgets.Info(content.Target)}
}
