package widget

import (
	"crypto/rand"
	"fmt"
	"maps"
)

// The modules of ipywidgets' front end, and their version.
const (
	baseModule    = "@jupyter-widgets/base"
	controlModule = "@jupyter-widgets/controls"
	moduleVersion = "2.0.0"
)

// viewType is the MIME type of a widget in an output.
const viewType = "application/vnd.jupyter.widget-view+json"

// Button is a button in a notebook. Its methods may be called concurrently.
type Button struct {
	hub   *Hub
	id    string
	parts []string
	label string
}

// NewButton returns a button for something that can't be undone. Each click calls click in a new
// goroutine.
func (h *Hub) NewButton(label, tooltip string, click func()) *Button {
	b := &Button{hub: h, id: newID(), label: label}
	layout, style := newID(), newID()
	b.parts = []string{b.id, layout, style}
	h.add(layout, &model{state: about(baseModule, "Layout", object{"width": "auto"})})
	h.add(style, &model{state: about(controlModule, "ButtonStyle", object{"_view_module": baseModule, "_view_name": "StyleView"})})
	h.add(b.id, &model{clicked: click, state: about(controlModule, "Button", object{
		"button_style": "danger", "description": label, "tooltip": tooltip, "disabled": false, "icon": "",
		"layout": "IPY_MODEL_" + layout, "style": "IPY_MODEL_" + style,
	})})
	return b
}

// View returns the bundle that shows the button in an output, or its label if there are no widgets.
func (b *Button) View() map[string]any {
	return object{"text/plain": b.label, viewType: object{"version_major": 2, "version_minor": 0, "model_id": b.id}}
}

// Disable changes the button's label and makes it ignore clicks.
func (b *Button) Disable(label string) { b.set(label, true) }

// Enable changes the button's label and makes it accept clicks again.
func (b *Button) Enable(label string) { b.set(label, false) }

func (b *Button) set(label string, disabled bool) {
	b.hub.update(b.id, object{"description": label, "disabled": disabled}, b.hub.publish)
}

// Close removes the button from all clients. The output that showed it has to be replaced.
func (b *Button) Close() {
	for _, id := range b.parts {
		b.hub.close(id)
	}
}

// about returns the state of a model, with the names of its class in the front end.
func about(module, class string, more object) object {
	state := object{
		"_model_module": module, "_model_module_version": moduleVersion, "_model_name": class + "Model",
		"_view_module": module, "_view_module_version": moduleVersion, "_view_name": class + "View",
	}
	maps.Copy(state, more)
	return state
}

// newID returns an id in the form of widget ids: 32 hexadecimal digits.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // It never fails.
	return fmt.Sprintf("%x", id)
}
