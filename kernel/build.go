package kernel

import (
	"context"
	"errors"
	"os"
	"slices"

	"gonbatch/internal/userdir"
	"gonbatch/kernel/build"
)

// buildOptions configure buildCell.
type buildOptions struct {
	// Session is the folder of the session, Go the go command. Args are the arguments that GoNB
	// gave to the session's go command: `build -o PROGRAM FLAGS`, or `test -c -o PROGRAM FLAGS`.
	Session, Go string
	Args        []string
	// Environ is the environment of the go command, as in os.Environ.
	Environ []string
}

// buildCell builds the program of a cell, in the working folder. The session's go command calls it
// as `PROGRAM kernel build`.
func buildCell(ctx context.Context, opts buildOptions) error {
	verb := slices.Index(opts.Args, "-o")
	if verb < 0 || verb+1 == len(opts.Args) || opts.Session == "" || opts.Go == "" {
		return errors.New("kernel build: want --session FOLDER --go COMMAND build -o PROGRAM [FLAGS]: the kernel calls this itself")
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	s := &session{dir: opts.Session}
	env := environment(opts.Environ)
	plans, _ := userdir.Cache(env.get, "plans") // The user may have no place for them.
	return build.Run(ctx, build.Options{
		Go: opts.Go, Dir: dir, Verb: opts.Args[:verb], Program: opts.Args[verb+1], Flags: opts.Args[verb+2:], Seed: s.seed(), Cell: s.cell(), Plans: s.plans(), Store: plans,
		Checkpoints: checkpointStore(env), Environ: opts.Environ, Output: os.Stderr,
	})
}
