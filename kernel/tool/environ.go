package tool

import "runtime"

// Environ are the variables with which the go command works in a module of the kernel's own,
// whatever the user's environment, or `go env -w`, says for the user's modules.
func Environ() []string { return []string{"GO111MODULE=on"} }

// Platform are the variables that make the go command build for this machine.
func Platform() []string { return []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH} }

// Outside adds to an environment what the go command needs in a module that is part of no
// workspace.
func Outside(environ []string, flags string) []string {
	environ = append(environ[:len(environ):len(environ)], Environ()...)
	return append(append(environ, Platform()...), "GOWORK=off", "GOFLAGS="+flags)
}
