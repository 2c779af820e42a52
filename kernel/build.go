package kernel

import (
	"context"
	"errors"
	"os"
	"slices"

	"gonbatch/internal/userdir"
	"gonbatch/kernel/build"
)

// buildCell builds the program of a cell, in the working folder. The session's go command calls it
// as `PROGRAM kernel build`, with the session's folder, the real go command and the arguments that
// it got from GoNB: `build -o PROGRAM FLAGS`, or `test -c -o PROGRAM FLAGS`.
func buildCell(ctx context.Context, sessionDir, goCommand string, args, environ []string) error {
	verb := slices.Index(args, "-o")
	if verb < 0 || verb+1 == len(args) || sessionDir == "" || goCommand == "" {
		return errors.New("kernel build: want --session FOLDER --go COMMAND build -o PROGRAM [FLAGS]: the kernel calls this itself")
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	s, env := &session{dir: sessionDir}, environment(environ)
	plans, _ := userdir.Cache(env.get, "plans") // The user may have no place for them.
	return build.Run(ctx, build.Options{
		Go: goCommand, Dir: dir, Verb: args[:verb], Program: args[verb+1], Flags: args[verb+2:], Seed: s.seed(), Cell: s.cell(),
		Plans: s.plans(), Store: plans, Checkpoints: checkpointStore(env), Environ: environ, Output: os.Stderr,
	})
}
