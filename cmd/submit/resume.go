package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/internal/rundir"
	"gonbatch/slurmtmpl"
	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

const resumeLong = `resume starts a run again that was stopped, failed, was cancelled or was lost. It runs the programs in
the run directory, on SLURM or on this machine as before. Cells that have succeeded are skipped, and
a training resumes from its newest checkpoint. Options replace those that the run was submitted with.

` + aboutRun

// resumable are the options that may change when a run goes on: they leave its programs and their results as they are.
var resumable = map[string]func(spec *submit.JobSpec, o *submitOptions){
	"nodes":          func(s *submit.JobSpec, o *submitOptions) { s.Nodes = o.Nodes },
	"tasks-per-node": func(s *submit.JobSpec, o *submitOptions) { s.TasksPerNode = o.TasksPerNode },
	"tasks":          func(s *submit.JobSpec, o *submitOptions) { s.TasksPerNode = o.Tasks },
	"gpus-per-node":  func(s *submit.JobSpec, o *submitOptions) { s.GPUsPerNode, s.GPUType = o.GPUs.count, o.GPUs.kind },
	"cpus-per-task":  func(s *submit.JobSpec, o *submitOptions) { s.CPUsPerTask = o.CPUsPerTask },
	"mem":            func(s *submit.JobSpec, o *submitOptions) { s.Mem = o.Mem },
	"time":           func(s *submit.JobSpec, o *submitOptions) { s.Time = o.Time },
	"partition":      func(s *submit.JobSpec, o *submitOptions) { s.Partition = o.Partition },
	"account":        func(s *submit.JobSpec, o *submitOptions) { s.Account = o.Account },
	"qos":            func(s *submit.JobSpec, o *submitOptions) { s.QOS = o.QOS },
	"constraint":     func(s *submit.JobSpec, o *submitOptions) { s.Constraint = o.Constraint },
	"mpi":            func(s *submit.JobSpec, o *submitOptions) { s.MPI = o.MPI },
	"mpi-library":    func(s *submit.JobSpec, o *submitOptions) { s.MPILibrary = o.MPILibrary },
	"devices":        func(s *submit.JobSpec, o *submitOptions) { s.Devices = o.Devices },
	"max-restarts":   func(s *submit.JobSpec, o *submitOptions) { s.MaxRestarts = o.MaxRestarts },
	"signal-lead":    func(s *submit.JobSpec, o *submitOptions) { s.SignalLead = o.SignalLead },
	"follow":         func(*submit.JobSpec, *submitOptions) {},
	"no-submit":      func(*submit.JobSpec, *submitOptions) {},
}

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
			r, err := a.findRun(cmd, args[0])
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runResume(ctx, a, r, opts, cmd.Flags())
		},
	}
	all := pflag.NewFlagSet("submit", pflag.ContinueOnError)
	opts.addFlags(all)
	cmd.Flags().SortFlags = false
	all.VisitAll(func(f *pflag.Flag) {
		if resumable[f.Name] != nil {
			cmd.Flags().AddFlag(f)
		}
	})
	addRunRoot(cmd)
	return cmd
}

// runResume starts the run again. All that can be refused comes first.
func runResume(ctx context.Context, a *app, r run, o *submitOptions, flags *pflag.FlagSet) error {
	spec, job, err := startAgain(ctx, a, r.dir, o, flags)
	switch {
	case err != nil:
		return err
	case r.manifest.Scheduler == localName:
		return runStarted(ctx, a, spec)
	case o.NoSubmit:
		return describeStaged(a, spec)
	}
	return announce(ctx, a, spec, job, o.Follow, func(words ...string) string {
		words[len(words)-1] = r.dir.Path() // It may lie anywhere.
		return "submit " + shellescape.QuoteCommand(words)
	})
}

// startAgain does what only one command at a time may do with a run: it makes sure that the run has ended, and has it start again. A
// run on this machine is recorded as this process's then, but its programs are still to be started.
func startAgain(ctx context.Context, a *app, dir rundir.Dir, o *submitOptions, flags *pflag.FlagSet) (spec submit.JobSpec, job submit.Job, err error) {
	lock, err := a.lock(ctx, dir)
	if err != nil {
		return spec, job, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	r, err := openRun(dir)
	if err != nil {
		return spec, job, err
	}
	if r, err = r.mayResume(ctx, a, o); err != nil {
		return spec, job, err
	}
	if spec, err = r.resumedSpec(a, o, flags); err != nil {
		return spec, job, err
	}
	if err := needWork(spec); err != nil {
		return spec, job, err
	}
	local := r.manifest.Scheduler == localName
	if !local {
		if spec, err = r.script(ctx, a, o, spec); err != nil {
			return spec, job, err
		}
	}
	if err := errors.Join(lock.Check(), ctx.Err()); err != nil {
		return spec, job, err
	}
	if err := r.restart(a); err != nil {
		return spec, job, err
	}
	switch {
	case local:
		err = recordProcess(submit.Job{Dir: dir})
	case !o.NoSubmit:
		job, err = queue(ctx, a, spec)
	}
	return spec, job, err
}

// resumedSpec is the job as it was submitted, with what the command line changes.
func (r run) resumedSpec(a *app, o *submitOptions, flags *pflag.FlagSet) (submit.JobSpec, error) {
	spec, err := submit.ReadSpec(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return spec, fmt.Errorf("run %s cannot be resumed: an older version of submit made it, which did not keep the job (%w)", r.dir.Name(), err)
	}
	if err != nil {
		return spec, err
	}
	if err := r.checkFlags(flags); err != nil {
		return spec, err
	}
	flags.Visit(func(f *pflag.Flag) {
		if change := resumable[f.Name]; change != nil {
			change(&spec, o)
		}
	})
	if err := spec.Validate(); err != nil {
		return spec, usageError{err}
	}
	return spec, a.checkSecrets(spec)
}

// checkFlags refuses options of the other kind of run.
func (r run) checkFlags(flags *pflag.FlagSet) error {
	local := r.manifest.Scheduler == localName
	for _, name := range []string{"nodes", "tasks-per-node", "no-submit"} {
		if local && flags.Changed(name) {
			return usage("--%s goes with a cluster, and run %s ran on one machine; give --tasks for another number of ranks", name, r.dir.Name())
		}
	}
	if !local && flags.Changed("tasks") {
		return usage("--tasks goes with runs on one machine, and run %s ran on a cluster; give --nodes and --tasks-per-node", r.dir.Name())
	}
	return nil
}

// needWork refuses a run that has nothing left to do, or whose programs are gone.
func needWork(spec submit.JobSpec) error {
	left := 0
	for _, step := range spec.Steps {
		if rundir.IsFinished(spec.RunDir, step.Name) {
			continue
		}
		left++
		if _, err := os.Stat(step.Program(spec.RunDir)); err != nil {
			return fmt.Errorf("run %s cannot be resumed: its program is gone: %w", spec.RunDir.Name(), err)
		}
	}
	if left == 0 {
		return fmt.Errorf("run %s has nothing left to do: all of its %s ended well", spec.RunDir.Name(), count(len(spec.Steps), "cell"))
	}
	return nil
}

// script finds the MPI for the job and writes its batch script again.
func (r run) script(ctx context.Context, a *app, o *submitOptions, spec submit.JobSpec) (submit.JobSpec, error) {
	if !o.NoSubmit {
		if err := slurm.Available(); err != nil {
			return spec, err
		}
	}
	if err := submit.WriteSpec(spec); err != nil {
		return spec, err
	}
	mpi, err := findMPI(ctx, a, o, spec)
	if err != nil {
		return spec, err
	}
	spec.MPI, spec.MPILibrary = mpi.Kind, mpi.Library
	return spec, writeScript(spec, slurmtmpl.Render)
}

// restart turns the run back into one that has not ended, and keeps that and by what command.
func (r run) restart(a *app) error {
	for _, path := range []string{r.dir.ExitStatus(), r.dir.EndingPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := rundir.ClearFailure(r.dir); err != nil {
		return err
	}
	known, err := rundir.KnownJobs(r.dir)
	if err != nil {
		return err
	}
	slices.Sort(known)
	known = slices.Compact(known)
	return rundir.UpdateManifest(r.dir, func(m *rundir.Manifest) {
		m.Resumed = append(m.Resumed, rundir.Resumption{Time: a.now(), CommandLine: a.commandLine, JobID: r.manifest.JobID, State: m.State, Jobs: known})
		m.JobID, m.Cluster, m.Process, m.Submitted = "", "", nil, nil
		m.ForgetEnd()
	})
}
