package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/run"
)

const resumeLong = `resume starts a run again after it was stopped, cancelled or lost, or has failed. It
runs the programs in the run directory, on SLURM or on this machine as before. Cells that have
succeeded are skipped, and training resumes from its newest checkpoint. Options replace those with
which the run was submitted.

` + aboutRun

func newResumeCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "resume [flags] RUN",
		Short: "Resume a run that ended early",
		Long:  resumeLong,
		Example: `  submit resume 4711
  submit resume --nodes 4 -F runs/mnist-20261121-101500-4f2a`,
		Args: oneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			runs, r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			ctx, stop := submit.Interruptible(cmd.Context())
			defer stop()
			err = runs.Resume(ctx, r, func(spec *submit.JobSpec) error { return opts.change(spec, r, cmd.Flags()) }, opts.Manner)
			return submit.BlameInterrupt(ctx, err)
		},
	}
	all := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	opts.addFlags(all)
	cmd.Flags().SortFlags = false
	all.VisitAll(func(f *pflag.Flag) {
		if config.IsMarked(f, config.Resumable) {
			cmd.Flags().AddFlag(f)
		}
	})
	addRunRoot(cmd)
	return cmd
}

// change applies the command line's options to the job of a run.
func (o *submitOptions) change(spec *submit.JobSpec, r run.Run, flags *pflag.FlagSet) (err error) {
	_, batch := r.Scheduler.(submit.Batch)
	if err := misplaced(flags, batch); err != nil {
		return fmt.Errorf("run %s: %w", r.Dir.Name(), err)
	}
	job := pflag.NewFlagSet("job", pflag.ContinueOnError)
	addJobFlags(job, spec)
	flags.Visit(func(f *pflag.Flag) {
		switch name := f.Name; {
		case err != nil:
		case name == "tasks":
			spec.TasksPerNode = o.Tasks
		case config.IsMarked(f, config.Resumable) && job.Lookup(name) != nil:
			err = job.Set(name, f.Value.String())
		}
	})
	return err
}
