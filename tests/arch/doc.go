// Package arch holds the architecture: its tests fail when a package imports against the arrows of
// docs/architecture.md, has no package comment, or when a file names the machine that it was
// written on.
//
// It has no code of its own. A new top-level package gets its place in the table of layers:
//
//	{name: "leaves", packages: []string{"rundir", "fetch", "source"}},
package arch
