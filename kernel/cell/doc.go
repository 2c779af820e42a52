// Package cell rewrites a cell for GoNB: shell commands report how they end, this kernel's own
// magics become Go, settings or calls of the submit command, and the last value is shown. Package
// gocell defines what a cell means. This package executes nothing.
//
//	prepared := cell.Prepare("!make", "/session/bin/status", "")  // the same cell, reporting the command's exit status
package cell
