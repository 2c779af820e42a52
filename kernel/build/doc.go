// Package build builds the program of a cell, like `go build`, but faster if possible.
//
// The first build of a set of imports runs `go build` and records how it compiled and linked the
// program (a plan). While the imports and all their dependencies stay the same, later cells are
// compiled and linked by that plan, without the go command, which would check some hundred packages
// again. Sessions share their plans. A program whose sources have not changed at all is not built
// again. If a plan does not cover a program, or fails, `go build` builds it.
//
//	err := build.Run(ctx, build.Options{
//		Go: "/usr/local/go/bin/go", Verb: []string{"build"}, Dir: module, Program: module + "/cell", Seed: seed, Cell: cell, Plans: plans,
//		Environ: os.Environ(), Output: os.Stderr,
//	})
package build
