package main

import (
	"os"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
)

// init keeps the main goroutine on the process's first thread. The program that "recorder attach"
// becomes gets a signal from the kernel when the submit command that started it dies, and the
// kernel keeps this setting only for the first thread.
func init() { runtime.LockOSThread() }

// newRecorderCommand returns the commands that the batch script and the rank script of a job call.
// They are not for users.
func newRecorderCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "recorder", Short: "Write executed.ipynb in a job", Hidden: true}
	cmd.AddCommand(
		&cobra.Command{
			Use: "serve RUNDIR JOB", Short: "Print a socket's path, and record what programs send to it until the job ends", Args: cobra.ExactArgs(2),
			RunE: func(_ *cobra.Command, args []string) error {
				return executed.Serve(a.Shell, rundir.At(args[0]), args[1])
			},
		},
		&cobra.Command{
			Use: "attach PROGRAM [ARGS]", Short: "Become a program whose output is recorded", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error {
				var spare []string
				if self, err := os.Executable(); err == nil {
					spare = []string{self, "recorder", "spare"}
				}
				return executed.Attach(a.Getenv(rundir.EnvRecorder), args, a.Environ, spare)
			},
		},
		&cobra.Command{
			Use: "spare", Short: "Read a program's output if its recorder dies", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return executed.Spare(a.Getenv) },
		},
		&cobra.Command{
			Use: "end CODE", Short: "Record how the job ended", Args: oneArg("CODE"),
			RunE: func(_ *cobra.Command, args []string) error {
				code, err := strconv.Atoi(args[0])
				if err != nil {
					return submit.Usagef("submit recorder end %s: want an exit code", args[0])
				}
				return executed.EndJob(a.Getenv, code)
			},
		},
	)
	return cmd
}
