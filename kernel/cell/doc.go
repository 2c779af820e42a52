// Package cell reads a notebook's cell as GoNB does: which lines are magics and shell commands, and whether the Go in it is complete.
// It runs nothing.
//
//	status, indent := cell.Check("%%\nfor {")                 // cell.Incomplete, "\t"
//	prepared := cell.Prepare("!make", "/session/bin/status")  // the same cell, reporting the command's exit status
package cell
