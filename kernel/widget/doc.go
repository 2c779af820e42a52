// Package widget shows buttons in a notebook, using the protocol of Jupyter's widgets (ipywidgets
// 8): a front end that shows widgets, such as JupyterLab with jupyterlab_widgets, needs nothing
// else. It is not for cells' programs: those have GoNB's own widgets.
//
//	hub := widget.NewHub(publish)                              // publish sends a message to all clients
//	if hub.Shown() {                                           // a client has asked for widgets
//		b := hub.NewButton("Cancel", "ends the job", cancel)   // cancel is called when it is clicked
//		display(b.View())                                      // a bundle for display_data
//	}
//
// The hub gets the clients' comm messages through Handle, which ignores those that are not about
// its widgets.
package widget
