// Package build builds the program of a cell: what `go build` does, and quicker when it can be.
//
// The first build of a set of imports is `go build`, with a note of how it compiled and linked the
// program (a plan). While the imports and all that they depend on stay the same, later cells are
// compiled and linked by that plan, without the go command, which would look at each of some
// hundred packages again. Sessions share their plans. A program whose sources have not changed at
// all is not built again. Whatever a plan does not cover, or fails at, goes to `go build`.
//
//	err := build.Run(ctx, build.Options{
//		Go: "/usr/local/go/bin/go", Verb: []string{"build"}, Dir: module, Program: module + "/cell", Seed: seed, Cell: cell, Plans: plans,
//		Environ: os.Environ(), Output: os.Stderr,
//	})
package build
