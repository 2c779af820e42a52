package widget

import (
	"encoding/json"
	"maps"
	"sync"
)

const (
	// target is what the comms of widgets are opened for, control that by which a client asks for
	// all widgets at once.
	target  = "jupyter.widget"
	control = "jupyter.widget.control"
	// protocol is the version of the protocol between a kernel and ipywidgets' front end.
	protocol = "2.1.0"
)

// object is a JSON object.
type object = map[string]any

// Publish sends a message to all clients.
type Publish func(messageType string, content, metadata map[string]any)

// Hub has the widgets of a session. Its methods may be called at once from several goroutines.
type Hub struct {
	publish Publish

	mu     sync.Mutex
	shown  bool
	models map[string]*model
}

// model is one thing that the front end mirrors: a button, its layout, its style.
type model struct {
	state   object
	clicked func()
}

// NewHub makes a hub without widgets.
func NewHub(publish Publish) *Hub {
	return &Hub{publish: publish, models: map[string]*model{}}
}

// Shown reports whether a client shows widgets: one that does asks for those of the session when it
// opens the notebook.
func (h *Hub) Shown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// Info are the comms of the session's widgets, for a comm_info_reply, if those of this target are
// asked for; "" are all.
func (h *Hub) Info(asked string) map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	comms := object{}
	if asked == target {
		h.shown = true
	}
	if asked == "" || asked == target {
		for id := range h.models {
			comms[id] = object{"target_name": target}
		}
	}
	return comms
}

// commMessage is the content of the messages of comms.
type commMessage struct {
	ID     string `json:"comm_id"`
	Target string `json:"target_name"`
	Data   struct {
		Method  string `json:"method"`
		Content struct {
			Event string `json:"event"`
		} `json:"content"`
	} `json:"data"`
}

// Handle handles a comm_open, comm_msg or comm_close of a client, and reports whether it was about
// widgets of the hub. reply publishes a message as the answer to this one: a client waits for that.
func (h *Hub) Handle(messageType string, content json.RawMessage, reply Publish) bool {
	var m commMessage
	if json.Unmarshal(content, &m) != nil {
		return false
	}
	if messageType == "comm_open" && m.Target == control {
		h.refuseControl(m.ID, reply)
		return true
	}
	h.mu.Lock()
	widget, ok := h.models[m.ID]
	h.mu.Unlock()
	if !ok {
		return false
	}
	switch {
	case messageType == "comm_close":
		h.remove(m.ID)
	case m.Data.Method == "request_state":
		h.update(m.ID, nil, reply)
	case m.Data.Method == "custom" && m.Data.Content.Event == "click" && widget.clicked != nil:
		// What a click starts may take long, and other messages wait behind this one.
		go widget.clicked()
	}
	return true
}

// refuseControl closes the comm by which a client wants all widgets at once: it asks for each,
// then, by its id of Info.
func (h *Hub) refuseControl(id string, reply Publish) {
	h.mu.Lock()
	h.shown = true
	h.mu.Unlock()
	reply("comm_close", object{"comm_id": id, "data": object{}}, object{})
}

// add makes the clients mirror a model.
func (h *Hub) add(id string, m *model) {
	h.mu.Lock()
	h.models[id] = m
	state := maps.Clone(m.state)
	h.mu.Unlock()
	h.publish("comm_open", object{
		"comm_id": id, "target_name": target, "data": object{"state": state, "buffer_paths": []any{}},
	}, object{"version": protocol})
}

// update changes a model's state, and sends it.
func (h *Hub) update(id string, changes object, send Publish) {
	h.mu.Lock()
	m, ok := h.models[id]
	if !ok {
		h.mu.Unlock()
		return
	}
	maps.Copy(m.state, changes)
	state := maps.Clone(m.state)
	h.mu.Unlock()
	send("comm_msg", object{"comm_id": id, "data": object{"method": "update", "state": state, "buffer_paths": []any{}}}, object{})
}

// remove forgets a model.
func (h *Hub) remove(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.models[id]
	delete(h.models, id)
	return ok
}

// close makes the clients forget a model.
func (h *Hub) close(id string) {
	if h.remove(id) {
		h.publish("comm_close", object{"comm_id": id, "data": object{}}, object{})
	}
}
