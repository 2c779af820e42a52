package kernel

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"gonbatch/kernel/build"
)

// BuildOptions say what Build builds.
type BuildOptions struct {
	// Session is the folder of the session, Go the go command. Args are those of `go build -o`: the
	// program, and more flags.
	Session, Go string
	Args        []string
	// Environ is the environment of the go command, as in os.Environ.
	Environ []string
}

// Build builds the program of a cell, in the working folder. The session's go command calls it by
// `PROGRAM kernel build`.
func Build(ctx context.Context, opts BuildOptions) error {
	if len(opts.Args) == 0 || opts.Session == "" || opts.Go == "" {
		return errors.New("kernel build: want --session FOLDER --go COMMAND PROGRAM [FLAGS]: the kernel calls this itself")
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	s := &session{dir: opts.Session}
	return build.Run(ctx, build.Options{
		Go: opts.Go, Dir: dir, Program: opts.Args[0], Flags: opts.Args[1:], Seed: s.seed(), Cell: s.cell(), Plans: s.plans(), Store: planStore(),
		Environ: opts.Environ, Output: os.Stderr,
	})
}

// planStore is the folder of the user's plans; "" if there is none.
func planStore() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "gonbatch", "plans")
}
