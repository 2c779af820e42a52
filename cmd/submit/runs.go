package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

// runs returns the runs in a folder, for cmd.
func (a *app) runs(cmd *cobra.Command, root string) *run.Runs {
	return &run.Runs{Shell: a.Shell, Root: root, RootGiven: cmd.Flags().Changed("run-root"), Schedulers: a.schedulers()}
}

// aboutRun explains how users name a run.
const aboutRun = `RUN is a job id, a run's name, the beginning of one, or a run directory.`

// addRunRoot declares the one option that commands on runs share with a submission.
func addRunRoot(cmd *cobra.Command) { addRunRootTo(cmd.Flags(), new(string)) }

func addRunRootTo(fs *pflag.FlagSet, to *string) {
	config.NonEmpty(fs, to, "path", "run-root", "", defaultRunRoot, "folder for run directories, on the shared file system")
	config.Mark(fs, config.Path, "run-root")
}

// runRoot returns the folder of runs for cmd, by the same rules as for a submission from the
// current folder. It ignores mistakes in other options, which must not keep anybody from inspecting
// or ending a run.
func (a *app) runRoot(cmd *cobra.Command) (string, error) {
	flag := cmd.Flags().Lookup("run-root")
	if !flag.Changed {
		if _, err := a.loadSome(cmd, ".", flag.Name); err != nil {
			return "", err
		}
	}
	return flag.Value.String(), nil
}

// findRun finds the run that word names.
func (a *app) findRun(cmd *cobra.Command, word string) (*run.Runs, run.Run, error) {
	root, err := a.runRoot(cmd)
	if err != nil {
		return nil, run.Run{}, err
	}
	runs := a.runs(cmd, root)
	r, err := runs.Find(word)
	return runs, r, err
}

// onEach makes cmd do something to each run that its arguments name, and print a report on each.
// A run is never guessed from the beginning of a name. A failure doesn't keep it from the others.
func (a *app) onEach(cmd *cobra.Command, do func(*run.Runs, run.Run) (report.Report, error)) *cobra.Command {
	addRunRoot(cmd)
	asJSON := addJSON(cmd)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return submit.Usagef("submit %s needs a RUN, or several", cmd.Name())
		}
		return nil
	}
	cmd.RunE = interruptible(func(cmd *cobra.Command, args []string) error {
		root, err := a.runRoot(cmd)
		if err != nil {
			return err
		}
		runs := a.runs(cmd, root)
		var errs []error
		for _, word := range args {
			all, err := runs.FindAll(word)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			for _, r := range all {
				done, err := do(runs, r)
				if err == nil {
					err = report.Write(a.Out, *asJSON, done)
				}
				errs = append(errs, err)
				if cmd.Context().Err() != nil {
					return errors.Join(errs...)
				}
			}
		}
		return errors.Join(errs...)
	})
	return cmd
}
