package relay

import (
	"encoding/json"

	"gonbatch/kernel/wire"
)

// onComm passes a comm's message to GoNB, except for the question by which a front end asks for all
// widgets: it waits until that comm is closed, and GoNB leaves it open.
func (r *relay) onComm(m *wire.Message) {
	var content struct {
		ID     string `json:"comm_id"`
		Target string `json:"target_name"`
	}
	if err := json.Unmarshal(m.Content, &content); err != nil || m.Header.Type != "comm_open" || content.Target != "jupyter.widget.control" {
		r.sendBack(r.back.shell, m)
		return
	}
	r.status(m, "busy")
	r.publish(m, "comm_close", object{"comm_id": content.ID, "data": object{}})
	r.status(m, "idle")
}
