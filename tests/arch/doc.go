// Package arch enforces the architecture: its tests fail if a package imports against the arrows of
// docs/architecture.md or has no package comment, or if a file names the machine that it was
// written on.
//
// The package has no code of its own. Add a new top-level package to the table of layers:
//
//	{name: "leaves", packages: []string{"internal/rundir", "internal/fetch"}},
package arch
