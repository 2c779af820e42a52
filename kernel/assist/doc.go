// Package assist completes Go code in cells and describes its identifiers. It asks gopls, which it
// starts ahead of the first request, about the cell and the session's declarations; it executes
// nothing, and works while a cell runs. It doesn't know magics: those are in package gocell.
package assist
