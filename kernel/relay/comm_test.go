package relay

import (
	"encoding/json"
	"slices"
	"testing"

	"gonbatch/kernel/wire"
)

// TestComm: a front end that shows widgets asks for the session's widgets when it opens a notebook,
// and is not left waiting for its answer.
func TestComm(t *testing.T) {
	b := start(t)
	id := b.ask("comm_info_request", object{"target_name": "jupyter.widget"})
	var info struct {
		Status string         `json:"status"`
		Comms  map[string]any `json:"comms"`
	}
	if err := json.Unmarshal(b.next().Content, &info); err != nil || info.Status != "ok" || info.Comms == nil || len(info.Comms) != 0 {
		t.Errorf("comm_info_reply: %+v, %v", info, err)
	}
	b.untilIdle(id)
	id = b.ask("comm_open", object{"comm_id": "c", "target_name": "jupyter.widget.control", "data": object{}})
	var kinds []string
	for len(kinds) < 3 {
		m := receive(t, b.iopub)
		kinds = append(kinds, m.Header.Type)
		if m.ParentID != id || m.Header.Type == "comm_close" && text(t, m, "comm_id") != "c" {
			t.Errorf("published about %s, not %s: %s", m.ParentID, id, m.Content)
		}
	}
	if want := []string{"status", "comm_close", "status"}; !slices.Equal(kinds, want) {
		t.Errorf("published %v, want %v", kinds, want)
	}
}

// TestCommWithoutGoNB: the message of a comm changes nothing in a kernel that could not start.
func TestCommWithoutGoNB(t *testing.T) {
	for _, kind := range []string{"comm_open", "comm_msg", "comm_close"} {
		m := &wire.Message{Content: []byte(`{"comm_id":"1","target_name":"w"}`)}
		m.Header.Type = kind
		new(relay).onComm(m)
	}
}
