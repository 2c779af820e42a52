package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
	"gonbatch/submit"
	"gonbatch/submit/config"
)

// app is the environment of the commands, read once.
type app struct {
	submit.Shell
	userConfigDir string
}

func newApp() *app {
	a := &app{Shell: submit.Shell{
		Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Now: time.Now,
		Runner:      &submit.Remembering{Runner: submit.ExecRunner{Env: submit.CleanEnviron(os.Environ())}, Commands: []string{"ldconfig", "/sbin/ldconfig", "git"}},
		CommandLine: os.Args,
	}}
	a.userConfigDir, _ = userdir.Config(a.Getenv) // The user may have none.
	return a
}

// execute runs the command line args and returns the exit code.
func execute(ctx context.Context, a *app, args []string) int {
	out := &submit.Output{Writer: a.Out}
	a.Out = out
	root := newRootCommand(a)
	root.SetArgs(args)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	err = cmp.Or(err, out.Err)
	if call := (*os.SyscallError)(nil); errors.As(err, &call) && call.Syscall == "getwd" {
		err = fmt.Errorf("the current folder no longer exists (%w); cd to another one", err)
	}
	interrupt := submit.Interrupt{}
	unread := errors.As(err, &interrupt) && interrupt.Signal == syscall.SIGPIPE // As in submit logs | head.
	if err != nil && !unread {
		fmt.Fprintln(a.Err, "submit:", rundir.Printable(err.Error()))
	}
	return submit.ExitCode(err)
}

// flagError explains what a flag's value must be; the library's own error shows strconv's.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		if own := (config.ValueError{}); errors.As(err, &own) {
			return submit.Usagef("--%s=%q: %w", flag.Name, invalid.GetValue(), own)
		}
		return submit.Usagef("--%s=%q: give %s (see submit --help)", flag.Name, invalid.GetValue(), config.Kind(flag))
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return submit.Usagef("%w (see submit --help; flags of the notebook's programs come after --)", err)
	}
	return submit.Usagef("%w (see submit --help)", err)
}

// loadConfig sets the command's flags from the environment and from the configuration files, found
// upward from start, and prints which files it used.
func (a *app) loadConfig(cmd *cobra.Command, start string) (*config.Config, error) {
	cfg, err := a.loadConfigInto(cmd.Flags(), config.Places{Start: start})
	if err == nil {
		a.printFiles(cfg)
	}
	return cfg, err
}

// loadSome sets only the named flags of the command, which it shares with a submission. It ignores
// the other options, and mistakes in them.
func (a *app) loadSome(cmd *cobra.Command, start string, names ...string) (*config.Config, error) {
	some := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	for _, name := range names {
		some.AddFlag(cmd.Flags().Lookup(name))
	}
	return a.loadConfigInto(some, config.Places{Start: start, Some: true})
}

func (a *app) loadConfigInto(flags *pflag.FlagSet, places config.Places) (*config.Config, error) {
	places.UserDir, places.Environ = a.userConfigDir, a.Environ
	cfg, err := config.Load(flags, places)
	if err != nil {
		return nil, submit.UsageError{Err: err}
	}
	for _, warning := range cfg.Warnings {
		a.Warn("%s", warning)
	}
	return cfg, nil
}

// printFiles prints the configuration files that were used.
func (a *app) printFiles(cfg *config.Config) {
	for _, path := range cfg.Files {
		fmt.Fprintf(a.Err, "submit: using the options in %s\n", path)
	}
}
