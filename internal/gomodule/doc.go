// Package gomodule knows what a go.mod means for a program's imports. It only reads and edits
// files, and never runs the go command.
package gomodule
