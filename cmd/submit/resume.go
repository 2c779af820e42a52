package main

import (
	"fmt"
	"maps"

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

RUN may be a sweep: then those of its runs start that ended without success, or that the cluster
hasn't taken yet; with -F, as soon as it takes them.

Arguments after -- are passed to the programs, after those of the submission, and in place of those
of an earlier resume. With them, training goes on even if it had ended: the first cell that trains
runs again, and all cells after it. The result isn't that of a training with these arguments from
the beginning.

` + aboutRun

func newResumeCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "resume [flags] RUN [-- ARGS]",
		Short: "Resume a run that ended early",
		Long:  resumeLong,
		Example: `  submit resume 4711
  submit resume --nodes 4 -F runs/mnist-20261121-101500-4f2a
  submit resume 4711 -- -max_epochs 20`,
		Args: beforeDash(oneArg("RUN")),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if len(opts.Notebook.ParamValues) > 0 {
				return submit.Usagef("resume takes no parameters (-p), because they are compiled into the run's programs: submit the notebook again; arguments after -- can change flags")
			}
			root, err := a.runRoot(cmd)
			if err != nil {
				return err
			}
			changes := func(r run.Run) run.Changes { return opts.changes(cmd, a.runs(cmd, root), r, args[1:]) }
			if all := a.runs(cmd, root).OfSweep(args[0]); len(all) > 0 {
				return a.runs(cmd, root).ResumeSweep(cmd.Context(), all, changes, opts.Manner)
			}
			runs, r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			return runs.Resume(cmd.Context(), r, changes(r), opts.Manner)
		}),
	}
	opts.addResumable(cmd)
	cmd.Flags().VarP(newParams(cmd.Flags(), &opts.Notebook), "param", "p", "")
	_ = cmd.Flags().MarkHidden("param") // For a better error than that of an unknown flag.
	addRunRoot(cmd)
	return cmd
}

const rerunLong = `rerun runs a run's programs again, as another run: the same bytes, with the same parameters,
arguments and options. Options of the command line replace those of the run, and arguments after --
its arguments. With --latest, the notebook is submitted as it is now, with the parameters and
options of the run.

` + aboutRun

func newRerunCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	latest := false
	cmd := &cobra.Command{
		Use:   "rerun [flags] RUN [-- ARGS]",
		Short: "Run a run again, as another run",
		Long:  rerunLong,
		Example: `  submit rerun 4711
  submit rerun 4711 --nodes 2 -t 4h
  submit rerun 4711 --latest -p lr=1e-4`,
		Args: beforeDash(oneArg("RUN")),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if len(opts.Notebook.ParamValues) > 0 && !latest {
				return submit.Usagef("the parameters are compiled into the run's programs: add --latest, which compiles its notebook again")
			}
			_, r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			runs := a.runs(cmd, r.Dir.Root())
			if root := cmd.Flags().Lookup("run-root"); root.Changed {
				runs = a.runs(cmd, root.Value.String())
			}
			changes := opts.changes(cmd, runs, r, args[1:])
			if latest {
				return runs.RerunLatest(cmd.Context(), r, changes, opts.Notebook.ParamValues, opts.Manner)
			}
			return runs.Rerun(cmd.Context(), r, changes, opts.Manner)
		}),
	}
	opts.addResumable(cmd)
	cmd.Flags().VarP(newParams(cmd.Flags(), &opts.Notebook), "param", "p", "with --latest: set parameter NAME=VALUE; repeatable")
	cmd.Flags().BoolVar(&latest, "latest", false, "submit the run's notebook as it is now")
	addRunRoot(cmd)
	return cmd
}

// addResumable declares the options that may change when a run's programs run again.
func (o *submitOptions) addResumable(cmd *cobra.Command) {
	all := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	o.addFlags(all)
	cmd.Flags().SortFlags = false
	all.VisitAll(func(f *pflag.Flag) {
		if config.IsMarked(f, config.Resumable) {
			cmd.Flags().AddFlag(f)
		}
	})
	cmd.Flags().BoolVar(&o.asMeasured, "as-measured", false, "ask for as much memory and as many CPUs as the job before has used, where it asked for much more or too little")
}

// changes returns what another start of a run does differently.
func (o *submitOptions) changes(cmd *cobra.Command, runs *run.Runs, r run.Run, args []string) run.Changes {
	return run.Changes{Args: args, Job: func(spec *submit.JobSpec) error {
		if err := o.change(spec, r, cmd.Flags()); err != nil {
			return err
		}
		return runs.WaitFor(cmd.Context(), o.After, r.Scheduler, spec)
	}}
}

// applyMeasured sets what the run's earlier job has shown to be enough, where the command line
// leaves that open. before is that job.
func applyMeasured(spec *submit.JobSpec, before submit.JobSpec, r run.Run, flags *pflag.FlagSet) error {
	m, ok := submit.Measure(r.Dir, before)
	if !ok {
		return submit.Usagef("--as-measured: run %s has recorded nothing of what it used: leave it out", r.Dir.Name())
	}
	m.Memory = m.Memory * int64(spec.TasksPerNode) / int64(max(1, before.TasksPerNode))
	a := m.Advise(*spec, submit.State(r.Manifest.State) == submit.OutOfMemory)
	if flags.Changed("mem") {
		a.Mem = ""
	}
	if flags.Changed("cpus-per-task") {
		a.CPUsPerTask = 0
	}
	a.Apply(spec)
	return nil
}

// change applies the command line's options to the job of a run.
func (o *submitOptions) change(spec *submit.JobSpec, r run.Run, flags *pflag.FlagSet) (err error) {
	_, batch := r.Scheduler.(submit.Batch)
	if err := misplaced(flags, batch); err != nil {
		return fmt.Errorf("run %s: %w", r.Dir.Name(), err)
	}
	before := *spec
	spec.Passed = maps.Clone(spec.Passed)
	job := pflag.NewFlagSet("job", pflag.ContinueOnError)
	addJobFlags(job, spec)
	flags.Visit(func(f *pflag.Flag) {
		to := job.Lookup(f.Name)
		if err != nil || to == nil || !config.IsMarked(f, config.Resumable) {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = to.Value.(pflag.SliceValue).Replace(list.GetSlice())
			return
		}
		err = job.Set(f.Name, f.Value.String())
	})
	if err == nil {
		preferGiven(spec, flags)
		err = o.divide(spec, flags, flags.Changed("tasks"))
	}
	follows := before.GPUs.Count > 0 && before.TasksPerNode == before.GPUs.Count && !flags.Changed("tasks") && !flags.Changed("tasks-per-node")
	if err == nil && follows { // A rank for each GPU stays that.
		spec.TasksPerNode = max(1, spec.GPUs.Count)
	}
	if err == nil && o.asMeasured {
		err = applyMeasured(spec, before, r, flags)
	}
	return err
}
