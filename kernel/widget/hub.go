package widget

import (
	"encoding/json"
	"maps"
	"sync"
)

const (
	// target is the target of widgets' comms, control that of the comm through which a client asks
	// for all widgets at once.
	target  = "jupyter.widget"
	control = "jupyter.widget.control"
	// protocol is the version of the protocol between a kernel and ipywidgets' front end.
	protocol = "2.1.0"
)

// object is a JSON object.
type object = map[string]any

// Publish sends a message to all clients.
type Publish func(messageType string, content, metadata map[string]any)

// Hub has the widgets of a session. Its methods may be called concurrently.
type Hub struct {
	publish Publish

	mu     sync.Mutex
	shown  bool
	models map[string]*model
}

// model is an object that the front end mirrors: a button, its layout, its style.
type model struct {
	state   object
	clicked func()
}

// NewHub returns a hub without widgets.
func NewHub(publish Publish) *Hub {
	return &Hub{publish: publish, models: map[string]*model{}}
}

// Shown reports whether a client shows widgets: such a client asks for the session's widgets when
// it opens the notebook.
func (h *Hub) Shown() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// Info returns the comms of the session's widgets, for a comm_info_reply, if the request is for
// their target; "" requests all targets.
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

// commMessage is the content of a comm message.
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
// widgets of the hub. reply publishes a message as the answer to this one, which clients wait for.
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
		// The click's function may take long, and other messages wait behind this one.
		go widget.clicked()
	}
	return true
}

// refuseControl closes the comm through which a client asks for all widgets at once. The client
// then asks for each one by its id from Info.
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

// update changes a model's state and sends it.
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

// remove removes a model and reports whether it existed.
func (h *Hub) remove(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.models[id]
	delete(h.models, id)
	return ok
}

// close makes the clients drop a model.
func (h *Hub) close(id string) {
	if h.remove(id) {
		h.publish("comm_close", object{"comm_id": id, "data": object{}}, object{})
	}
}
