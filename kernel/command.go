package kernel

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/internal/source"
	"gonbatch/kernel/build"
)

// Commands are the names of the commands that Command runs, below `PROGRAM kernel`. Jupyter calls
// run, and a session calls the others.
var Commands = []string{"run", "build", "guard", "stream"}

// Command runs one of Commands with its arguments, and returns the exit code of a program that has
// reported its own end. The code is 0 if there is an error.
func Command(ctx context.Context, name string, args, environ []string, log io.Writer) (code int, err error) {
	flags := flag.NewFlagSet("kernel "+name, flag.ContinueOnError)
	file := flags.String("connection-file", "", "Jupyter's connection file, for run")
	session := flags.String("session", "", "the session's folder, for build and guard")
	goCommand := flags.String("go", "", "the go command, for build")
	if err := flags.Parse(args); err != nil {
		return 0, fmt.Errorf("kernel %s: %w", name, err)
	}
	switch name {
	case "run":
		return 0, runOrRefuse(ctx, *file, environ, log)
	case "build":
		err := buildCell(ctx, *session, *goCommand, flags.Args(), environ)
		if errors.Is(err, build.ErrBuild) { // The compiler has reported it.
			return 1, nil
		}
		return 0, err
	case "guard":
		return 0, guard(os.Stdin, *session, environ)
	case "stream":
		return stream(flags.Args(), environment(environ).get(rundir.EnvCellDir), environ)
	}
	return 0, fmt.Errorf("kernel %s: there is no such command", name)
}

// runOrRefuse runs a session. If it can't start, its cells get the reason.
func runOrRefuse(ctx context.Context, connectionFile string, environ []string, log io.Writer) error {
	opts, err := FindOptions(ctx, environ, log)
	opts.ConnectionFile = connectionFile
	if err != nil {
		return refuse(ctx, opts, err)
	}
	err = Run(ctx, opts)
	if reason := new(notStarted); errors.As(err, &reason) {
		return refuse(ctx, opts, err)
	}
	return err
}

// FindOptions finds gonbatch's source and XLA's plugin for a session. A session can start without a
// plugin: a cell that needs one says what is missing.
func FindOptions(ctx context.Context, environ []string, log io.Writer) (opts Options, err error) {
	opts = Options{Environ: environ, Log: log}
	if opts.SourceDir, err = sourceDir(ctx, environ); err != nil {
		return opts, err
	}
	if found, err := plugin.Find(plugin.Options{Platform: plugin.CPU, Getenv: environment(environ).get}); err == nil {
		opts.PluginDir = filepath.Dir(found.Path)
	}
	return opts, nil
}

// sourceDir returns the source tree of gonbatch's own library, with which the programs are
// compiled.
func sourceDir(ctx context.Context, environ environment) (string, error) {
	return source.Dir(ctx, source.Options{Getenv: environ.get})
}
