package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/slurm"
)

// aboutRun says how a person names a run.
const aboutRun = `RUN is a job id, a run's name, the beginning of one, or a run directory.`

// addRunRoot declares the one option that the commands that look at runs share with a submission.
func addRunRoot(cmd *cobra.Command) {
	cmd.Flags().String("run-root", defaultRunRoot, "folder for run directories, on the shared file system")
}

// runRoot is the folder of runs that counts for cmd, by the same rules as for a submission from the
// current folder. Mistakes in other options do not keep anybody from looking at a run, or from
// ending it.
func (a *app) runRoot(cmd *cobra.Command) (string, error) {
	flag := cmd.Flags().Lookup("run-root")
	if flag.Changed {
		return flag.Value.String(), nil
	}
	opts := newSubmitOptions()
	all, only := pflag.NewFlagSet("submit", pflag.ContinueOnError), pflag.NewFlagSet("submit", pflag.ContinueOnError)
	opts.addFlags(all)
	only.AddFlag(all.Lookup("run-root"))
	_, err := a.loadConfigInto(only, config.Places{Start: ".", Some: true})
	return opts.RunRoot, err
}

// run is a run that a command names.
type run struct {
	dir      rundir.Dir
	manifest rundir.Manifest
	// unasked is why SLURM could not be asked whether it has a job of the run; nil where it could, or need not.
	unasked error
}

// openRun reads what is known of the run in dir, with the job that has started it last.
func openRun(dir rundir.Dir) (run, error) {
	m, err := rundir.ReadManifest(dir)
	if err == nil {
		_, err = m.Adopt(dir)
	}
	return run{dir: dir, manifest: m}, err
}

// findRun finds the run that word names: a job id, a run's name or the start of one, or its directory.
func (a *app) findRun(cmd *cobra.Command, word string) (run, error) {
	root, err := a.runRoot(cmd)
	if err != nil {
		return run{}, err
	}
	dir, err := rundir.Find(root, word)
	if err != nil {
		return run{}, err
	}
	return openRun(dir)
}

// job is the run as its scheduler knows it.
func (r run) job() submit.Job {
	return submit.Job{ID: submit.JobID(r.manifest.JobID), Cluster: r.manifest.Cluster, Dir: r.dir}
}

// queued reports whether SLURM has, or had, the run.
func (r run) queued() bool { return r.manifest.Scheduler == slurm.Name && r.manifest.JobID != "" }

// staged reports whether the run waits to be queued, as far as it knows itself.
func (r run) staged() bool { return r.manifest.Scheduler == slurm.Name && r.manifest.JobID == "" }

// settled reports whether the manifest knows how the run ended. That it was lost is no end: another cluster may have it.
func (r run) settled() bool {
	return r.manifest.Ended != nil && submit.State(r.manifest.State) != submit.Lost
}

// asker knows how the run is doing: SLURM if it has the run and the manifest does not know the end, else the manifest.
func (r run) asker(scheduler submit.Asker) submit.Asker {
	if r.queued() && !r.settled() {
		return scheduler
	}
	return manifestAsker{}
}

// adopted is the run with its job, where SLURM has one that the run does not know of: it was queued by hand, or by a command that was
// killed before it could keep that.
func (r run) adopted(ctx context.Context, a *app, survey *slurm.Survey) (run, error) {
	if !r.staged() {
		return r, nil
	}
	job, err := survey.Find(ctx, r.dir, r.manifest.EarlierJobs())
	if err != nil || job.ID == "" {
		return r, err
	}
	r.manifest.JobID, r.manifest.Cluster = string(job.ID), job.Cluster
	a.warnUnlessForbidden(rundir.UpdateManifest(r.dir, func(m *rundir.Manifest) {
		if m.JobID == "" && !slices.Contains(m.EarlierJobs(), string(job.ID)) { // Else another command was faster.
			m.JobID, m.Cluster, m.State = string(job.ID), job.Cluster, string(submit.Pending)
		}
	}))
	return r, nil
}

// requeued gives the run without the end that it has recorded, where SLURM has queued the same job again: a job that has ended can be
// requeued as long as SLURM knows it, and waits then before it starts. What SLURM cannot say leaves the recorded end as it is.
func (r run) requeued(ctx context.Context, a *app, scheduler submit.Asker, survey *slurm.Survey) run {
	if !r.queued() || !r.settled() || submit.State(r.manifest.State) == submit.Completed {
		return r
	}
	known, err := survey.Find(ctx, r.dir, r.manifest.EarlierJobs())
	if err != nil || known.ID != r.job().ID {
		return r // Jobs that SLURM has forgotten are many, and each would be a question of its own.
	}
	status, err := scheduler.Status(ctx, r.job())
	if err != nil || status.State == submit.Unknown || status.State.Ended() || status.Ending {
		return r
	}
	ended := *r.manifest.Ended
	r.manifest.ForgetEnd()
	a.warnUnlessForbidden(updateJob(r.job(), func(m *rundir.Manifest) {
		if m.Ended != nil && m.Ended.Equal(ended) { // Else another command knows better.
			m.ForgetEnd()
		}
	}))
	return r
}

// look asks how the run is doing, and keeps it if the run has ended. It gives the run as it is known then. Survey, where it is given,
// answers for many runs.
func (r run) look(ctx context.Context, a *app, survey *slurm.Survey) (run, submit.Status, error) {
	scheduler := slurm.New(a.runner)
	asker := submit.Asker(scheduler)
	if survey == nil {
		survey = scheduler.Survey(ctx)
	} else {
		asker = survey
	}
	r, r.unasked = r.adopted(ctx, a, survey)
	r = r.requeued(ctx, a, asker, survey)
	status, err := r.asker(asker).Status(ctx, r.job())
	if err == nil && !r.settled() && status.State.Ended() {
		a.warnUnlessForbidden(recordEnd(a, r.job(), status))
	}
	return r, status, err
}

// warnUnlessForbidden says that something could not be written that is only written for later. Who may not write there, as in a
// colleague's run, need not hear it.
func (a *app) warnUnlessForbidden(err error) {
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		fmt.Fprintln(a.err, "submit: warning:", err)
	}
}

// lock gives the right to start or end the run, which one command at a time has. It says so where another has it.
func (a *app) lock(ctx context.Context, dir rundir.Dir) (*rundir.Lock, error) {
	lock, err := rundir.AcquireLock(ctx, dir.RunLock(), func(p rundir.Process) {
		fmt.Fprintf(a.err, "waiting for another submit command (process %d on %s), which is starting or ending this run\n", p.PID, p.Host)
	})
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", dir.Name(), err)
	}
	if err := lock.CoverChildren(ctx); err != nil {
		return nil, fmt.Errorf("run %s: %w", dir.Name(), errors.Join(err, lock.Release()))
	}
	return lock, nil
}
