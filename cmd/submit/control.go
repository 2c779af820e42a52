package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/submit"
	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

// aboutRuns explains how users name runs that a command changes.
const aboutRuns = `RUN is a job id, a run's whole name, the name of a job if it has one run, a run directory, or a
sweep, which stands for all of its runs.`

func newCancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel RUN...",
		Short: "Cancel the jobs of runs",
		Long:  "cancel ends the job of each run. The run directory stays; \"submit resume\" starts the run again.\n\n" + aboutRuns,
		Example: `  submit cancel 4711
  submit cancel 4711 4712 4713`,
	}
	return a.onEach(cmd, func(runs *run.Runs, r run.Run) (report.Report, error) { return runs.Cancel(cmd.Context(), r) })
}

func newHoldCommand(a *app) *cobra.Command {
	return a.controlling(submit.Hold, "Keep waiting jobs from starting",
		"hold keeps the job of each run from starting until \"submit release\". The job must be waiting.")
}

func newReleaseCommand(a *app) *cobra.Command {
	return a.controlling(submit.Release, "Let held jobs start", "release lets the job of each run start that \"submit hold\", or the cluster, has held.")
}

func newRequeueCommand(a *app) *cobra.Command {
	return a.controlling(submit.Requeue, "Put running jobs back into the queue",
		`requeue ends the job of each run and puts it back into the queue under the same id. Its programs are
told to save first, and go on from their checkpoints.`)
}

// controlling returns the command of a verb.
func (a *app) controlling(verb submit.Verb, short, long string) *cobra.Command {
	cmd := &cobra.Command{Use: string(verb) + " RUN...", Short: short, Long: long + "\n\n" + aboutRuns, Example: "  submit " + string(verb) + " 4711"}
	return a.onEach(cmd, func(runs *run.Runs, r run.Run) (report.Report, error) { return runs.Control(cmd.Context(), r, verb) })
}

func newUpdateCommand(a *app) *cobra.Command {
	var spec submit.JobSpec
	cmd := &cobra.Command{
		Use:   "update RUN... [flags]",
		Short: "Change options of jobs that have not ended",
		Long: `update changes options of the job of each run, as far as the cluster lets you: most can only change
while the job waits, and only administrators can give a running job more time. A resumed run keeps
the changes.

` + aboutRuns,
		Example: `  submit update 4711 --time 4h
  submit update 4711 4712 -p long`,
	}
	updatable := updatableOptions()
	all := pflag.NewFlagSet("job", pflag.ContinueOnError)
	addJobFlags(all, &spec)
	partition := all.Lookup("partition")
	partition.Shorthand, partition.Usage = "p", "partition"
	all.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(updatable, f.Name) {
			cmd.Flags().AddFlag(f)
		}
	})
	return a.onEach(cmd, func(runs *run.Runs, r run.Run) (report.Report, error) {
		var names []string
		cmd.Flags().Visit(func(f *pflag.Flag) {
			if slices.Contains(updatable, f.Name) {
				names = append(names, f.Name)
			}
		})
		if len(names) == 0 {
			return nil, submit.Usagef("nothing to update: give an option, such as --time 4h")
		}
		return runs.Update(cmd.Context(), r, names, func(s *submit.JobSpec, names []string) (err error) {
			s.Passed = maps.Clone(s.Passed)
			if slices.Contains(names, "mem") {
				preferGiven(s, cmd.Flags())
			}
			changed := pflag.NewFlagSet("job", pflag.ContinueOnError)
			addJobFlags(changed, s)
			for _, name := range names {
				if err == nil {
					err = changed.Set(name, cmd.Flags().Lookup(name).Value.String())
				}
			}
			return err
		})
	})
}
