package tool

import (
	"runtime"
	"slices"
	"strings"
)

// Environ are the variables with which the go command works in a module of the kernel's own,
// whatever the user's environment, or `go env -w`, says for the user's modules.
func Environ() []string { return []string{"GO111MODULE=on"} }

// Platform are the variables that make the go command build for this machine.
func Platform() []string { return []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH} }

// Get is the value of a variable in an environment, whose last entry counts; "" if it is unset.
func Get(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Outside adds to an environment what the go command needs in a module that is part of no
// workspace.
func Outside(environ []string, flags string) []string {
	environ = append(environ[:len(environ):len(environ)], Environ()...)
	return append(append(environ, Platform()...), "GOWORK=off", "GOFLAGS="+flags)
}
