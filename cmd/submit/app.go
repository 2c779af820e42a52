package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/kernel/build"
	"gonbatch/submit"
	"gonbatch/submit/config"
)

// app is the world around the commands, read once.
type app struct {
	out, err      io.Writer
	environ       []string
	getenv        func(string) string
	now           func() time.Time
	runner        submit.Runner
	hasGPU        func() bool
	userConfigDir string
	commandLine   []string
}

func newApp() *app {
	a := &app{
		out: os.Stdout, err: os.Stderr, environ: os.Environ(), getenv: os.Getenv, now: time.Now,
		runner: submit.ExecRunner{Env: submit.CleanEnviron(os.Environ())}, hasGPU: hasGPU, commandLine: os.Args,
	}
	if dir, err := os.UserConfigDir(); err == nil {
		a.userConfigDir = filepath.Join(dir, "gonbatch")
	}
	return a
}

// execute runs the command line args and returns the exit code.
func execute(ctx context.Context, a *app, args []string) int {
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, build.ErrBuild) { // the compiler has said it
		fmt.Fprintln(a.err, "submit:", err)
	}
	return exitCode(err)
}

// exitCode is a program's own exit code where one failed, what a shell says of a signal, 2 for a wrong option,
// else 1.
func exitCode(err error) int {
	var job *submit.JobError
	var interrupt submit.Interrupt
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &job) && job.Status.ExitCode != 0:
		return job.Status.ExitCode
	case errors.As(err, &job) && job.Status.Signal != 0:
		return 128 + job.Status.Signal
	case errors.As(err, &interrupt):
		return interrupt.ExitCode()
	case errors.As(err, &usage):
		return 2
	}
	return 1
}

// usageError is a wrong option, wherever it was set.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// flagError says in words what a flag's value must be; the library's own error has strconv's.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		return usage("--%s=%q: give %s (see submit --help)", flag.Name, invalid.GetValue(), config.Kind(flag))
	}
	return usage("%w (see submit --help)", err)
}

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// lastWord is how long a command has to end after a second interrupt.
const lastWord = 5 * time.Second

// interruptible returns a context that SIGINT and SIGTERM end, with a submit.Interrupt as its cause, and so do SIGHUP, when the
// terminal is closed, and SIGPIPE, when the reader of the output is gone (submit ... | head): what submit started must end first, and
// save. A second SIGINT or SIGTERM is passed on by the Interrupt, and ends the process a little later, or a third at once.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE) // For good: another write must not end the process while it ends others.
	if !signal.Ignored(syscall.SIGHUP) { // As it is below nohup.
		signal.Notify(gone, syscall.SIGHUP) // For good too: the shell and the kernel may both say that the terminal is gone.
	}
	again, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		select {
		case sig := <-signals:
			cancel(submit.Interrupt{Signal: sig.(syscall.Signal), Again: again})
		case sig := <-gone:
			cancel(submit.Interrupt{Signal: sig.(syscall.Signal), Again: again})
		case <-end:
			return
		}
		select {
		case sig := <-signals:
			close(again)
			endProcess(sig.(syscall.Signal), end)
		case <-end:
		}
	}()
	return ctx, sync.OnceFunc(func() { cancel(nil); close(end) })
}

// endProcess ends this process by a signal, unless its command ends by itself in time.
func endProcess(sig syscall.Signal, end <-chan struct{}) {
	signal.Reset(syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-time.After(lastWord):
		_ = syscall.Kill(syscall.Getpid(), sig)
	case <-end:
	}
}

// loadConfig fills the command's flags from the environment and the configuration files, found
// upward from start, and says which files it used.
func (a *app) loadConfig(cmd *cobra.Command, start string) (*config.Config, error) {
	cfg, err := a.loadConfigInto(cmd.Flags(), config.Places{Start: start})
	if err != nil {
		return nil, err
	}
	for _, path := range cfg.Files {
		fmt.Fprintf(a.err, "submit: using the options in %s\n", path)
	}
	return cfg, nil
}

func (a *app) loadConfigInto(flags *pflag.FlagSet, places config.Places) (*config.Config, error) {
	places.UserDir, places.Environ = a.userConfigDir, a.environ
	cfg, err := config.Load(flags, places)
	if err != nil {
		return nil, usageError{err}
	}
	for _, warning := range cfg.Warnings {
		fmt.Fprintln(a.err, "submit: warning:", warning)
	}
	return cfg, nil
}
