package main

import (
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"gonbatch/submit/executed"
	"gonbatch/submit/modules"
)

// init keeps the main goroutine on the process's first thread. The program that "recorder attach"
// becomes gets a signal from the kernel when the submit command that started it dies, and the
// kernel keeps this setting only for the first thread.
func init() { runtime.LockOSThread() }

// newImportsCommand returns the command by which submit completes programs. It is not for users.
func newImportsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: modules.CommandName, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return modules.Command(os.Stdin, a.Out, args) },
	}
}

// newRecorderCommand returns the command that a job's scripts call. It is not for users.
func newRecorderCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: executed.Name, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return executed.Command(a.Shell, args) },
	}
}
