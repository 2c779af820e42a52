package tool

import (
	"runtime"
	"slices"
	"strings"
)

// Environ returns the variables that the go command needs in one of the kernel's own modules,
// whatever the user's environment, or `go env -w`, sets for the user's modules.
func Environ() []string { return []string{"GO111MODULE=on"} }

// Platform returns the variables that make the go command build for this machine.
func Platform() []string { return []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH} }

// Get returns the value of a variable in an environment, whose last entry counts; "" if it is
// unset.
func Get(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// Outside adds the variables that the go command needs in a module outside any workspace.
func Outside(environ []string, flags string) []string {
	environ = append(environ[:len(environ):len(environ)], Environ()...)
	return append(append(environ, Platform()...), "GOWORK=off", "GOFLAGS="+flags)
}
