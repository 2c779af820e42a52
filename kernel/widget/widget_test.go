package widget

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// message is a message that the hub has sent.
type message struct {
	kind              string
	content, metadata map[string]any
}

func newHub() (*Hub, *[]message) {
	var sent []message
	return NewHub(func(kind string, content, metadata map[string]any) {
		sent = append(sent, message{kind, content, metadata})
	}), &sent
}

// asAnswer marks published messages as answers.
func asAnswer(publish Publish) Publish {
	return func(kind string, content, metadata map[string]any) {
		metadata["answer"] = true
		publish(kind, content, metadata)
	}
}

func raw(format string, args ...any) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(format, args...))
}

// TestButton: a button is three models that refer to one another, in an order in which a front end
// can create them.
func TestButton(t *testing.T) {
	h, sent := newHub()
	clicks := make(chan bool, 1)
	b := h.NewButton("Cancel", "ends it", func() { clicks <- true })
	if len(*sent) != 3 {
		t.Fatalf("sent %v, want three comm_open", *sent)
	}
	known := map[string]bool{}
	var state map[string]any
	for _, m := range *sent {
		state = m.content["data"].(object)["state"].(object)
		if m.kind != "comm_open" || m.content["target_name"] != "jupyter.widget" || m.metadata["version"] != "2.1.0" {
			t.Errorf("sent %+v", m)
		}
		known["IPY_MODEL_"+m.content["comm_id"].(string)] = true
	}
	if state["_model_name"] != "ButtonModel" || !known[state["layout"].(string)] || !known[state["style"].(string)] {
		t.Errorf("the button is %v", state)
	}
	view := b.View()[viewType].(object)
	if view["model_id"] != b.id || len(h.Info("")) != 3 || len(h.Info("other")) != 0 {
		t.Errorf("view %v, comms %v", view, h.Info(""))
	}
	if !h.Handle("comm_msg", raw(`{"comm_id":%q,"data":{"method":"custom","content":{"event":"click"}}}`, b.id), h.publish) {
		t.Error("the click was not the hub's")
	}
	select {
	case <-clicks:
	case <-time.After(5 * time.Minute):
		t.Error("the click did not arrive")
	}
}

func TestButtonChanges(t *testing.T) {
	h, sent := newHub()
	b := h.NewButton("Cancel", "", nil)
	steps := []struct {
		name string
		do   func()
		kind string
		want map[string]any
	}{
		{"disabled", func() { b.Disable("cancelling") }, "comm_msg", object{"description": "cancelling", "disabled": true}},
		{"asked for", func() {
			h.Handle("comm_msg", raw(`{"comm_id":%q,"data":{"method":"request_state"}}`, b.id), asAnswer(h.publish))
		}, "comm_msg", object{"description": "cancelling", "_model_name": "ButtonModel"}},
		{"enabled", func() { b.Enable("again") }, "comm_msg", object{"description": "again", "disabled": false}},
		{"a click that nobody wants", func() {
			h.Handle("comm_msg", raw(`{"comm_id":%q,"data":{"method":"custom","content":{"event":"click"}}}`, b.id), h.publish)
		}, "", nil},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			*sent = nil
			step.do()
			if step.kind == "" {
				if len(*sent) != 0 {
					t.Errorf("sent %v", *sent)
				}
				return
			}
			if len(*sent) != 1 || (*sent)[0].kind != step.kind {
				t.Fatalf("sent %v, want one %s", *sent, step.kind)
			}
			if answers := (*sent)[0].metadata["answer"] == true; answers != (step.name == "asked for") {
				t.Errorf("it is an answer: %v", answers)
			}
			state := (*sent)[0].content["data"].(object)["state"].(object)
			for name, want := range step.want {
				if state[name] != want {
					t.Errorf("%s is %v, want %v", name, state[name], want)
				}
			}
		})
	}
	*sent = nil
	b.Close()
	b.Close()
	if len(*sent) != 3 || (*sent)[0].kind != "comm_close" || len(h.Info("")) != 0 {
		t.Errorf("closed twice: sent %v, left %v", *sent, h.Info(""))
	}
}

// TestHandle: messages that are not about the hub's widgets are ignored, and a client that asks for
// widgets is noticed.
func TestHandle(t *testing.T) {
	tests := []struct {
		name, kind, content string
		ours, shown         bool
		sent                int
	}{
		{name: "GoNB's", kind: "comm_open", content: `{"comm_id":"a","target_name":"gonb_comm"}`},
		{name: "of an unknown widget", kind: "comm_msg", content: `{"comm_id":"a","data":{"method":"request_state"}}`},
		{name: "no JSON", kind: "comm_msg", content: `{`},
		{name: "control", kind: "comm_open", content: `{"comm_id":"a","target_name":"jupyter.widget.control"}`, ours: true, shown: true, sent: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, sent := newHub()
			if ours := h.Handle(tt.kind, json.RawMessage(tt.content), asAnswer(h.publish)); ours != tt.ours || h.Shown() != tt.shown || len(*sent) != tt.sent {
				t.Errorf("ours %v, shown %v, sent %v", ours, h.Shown(), *sent)
			}
			for _, m := range *sent {
				if m.metadata["answer"] != true {
					t.Errorf("%+v answers nothing", m)
				}
			}
		})
	}
	h, _ := newHub()
	if h.Info("gonb_comm"); h.Shown() {
		t.Error("a client that asks for other comms shows widgets")
	}
	if h.Info("jupyter.widget"); !h.Shown() {
		t.Error("a client that asks for widgets does not show them")
	}
	b := h.NewButton("x", "", nil)
	if !h.Handle("comm_close", raw(`{"comm_id":%q}`, b.id), h.publish) || len(h.Info("")) != 2 {
		t.Errorf("closed by the client: left %v", h.Info(""))
	}
}
