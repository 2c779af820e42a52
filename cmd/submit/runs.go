package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/rundir"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/slurm"
)

// addRunRoot declares the one option that the commands that look at runs share with a submission.
func addRunRoot(cmd *cobra.Command) {
	cmd.Flags().String("run-root", defaultRunRoot, "folder of the run directories")
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
	m, err := rundir.ReadManifest(dir)
	return run{dir, m}, err
}

// job is the run as its scheduler knows it.
func (r run) job() submit.Job {
	return submit.Job{ID: submit.JobID(r.manifest.JobID), Cluster: r.manifest.Cluster, Dir: r.dir}
}

// queued tells whether SLURM has, or had, the run.
func (r run) queued() bool { return r.manifest.Scheduler == slurm.Name && r.manifest.JobID != "" }

// asker tells how the run fares: SLURM if it has the run and the manifest does not know the end, else the manifest.
func (r run) asker(a *app) submit.Asker {
	if r.queued() && r.manifest.Ended == nil {
		return slurm.New(a.runner)
	}
	return manifestAsker{}
}

// status asks how the run fares, and keeps it if the run has ended.
func (r run) status(ctx context.Context, a *app) (submit.Status, error) {
	status, err := r.asker(a).Status(ctx, r.job())
	if err == nil && r.manifest.Ended == nil && status.State.Ended() {
		err = recordEnd(a, r.job(), status)
	}
	return status, err
}
