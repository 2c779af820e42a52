package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/local"
)

// localName is the scheduler's name in the manifests of runs on this machine.
const localName = local.Name

// runStarted runs the staged steps of a run that is recorded as this process's, and tells what the run left behind.
func runStarted(ctx context.Context, a *app, spec submit.JobSpec) error {
	job := submit.Job{Dir: spec.RunDir}
	err := recordLocal(ctx, a, spec)
	if recordErr := recordStatus(job, localStatus(err), a.now()); recordErr != nil {
		return errors.Join(err, recordErr)
	}
	if err != nil {
		return fmt.Errorf("%w\nrun directory: %s", err, spec.RunDir.Path())
	}
	return describeRun(a.out, spec.RunDir)
}

// recordProcess keeps that the job runs, and which process will record its end.
func recordProcess(job submit.Job) error {
	process, err := rundir.ThisProcess()
	if err != nil {
		return err
	}
	return rundir.UpdateManifest(job.Dir, func(m *rundir.Manifest) {
		m.State, m.Process = string(submit.Running), &process
	})
}

// localStatus is how a local run ended, as its error tells.
func localStatus(err error) submit.Status {
	var job *submit.JobError
	var interrupt submit.Interrupt
	switch {
	case err == nil:
		return submit.Status{State: submit.Completed}
	case errors.As(err, &interrupt):
		return submit.Status{State: submit.Cancelled, Reason: interrupt.Error(), ExitCode: interrupt.ExitCode()}
	case errors.As(err, &job):
		return job.Status
	}
	return submit.Status{State: submit.Failed, Reason: trimmed(err.Error())}
}

// describeRun lists what a run left behind.
func describeRun(w io.Writer, dir rundir.Dir) error {
	if _, err := fmt.Fprintf(w, "\nrun directory: %s\n", dir.Path()); err != nil {
		return err
	}
	for _, item := range []struct{ path, meaning string }{
		{dir.Executed(), "the notebook with its outputs"},
		{dir.RankLog(0), "log of rank 0"},
		{dir.Metrics(), "metrics, one JSON object a line"},
		{dir.Curves(), "curves of the metrics, and sample images, as PNG"},
		{dir.TensorBoard(), "for tensorboard --logdir"},
		{dir.Checkpoints(), "checkpoints, the weights as safetensors"},
		{dir.Sources(), "the notebook as a Go module"},
		{dir.ManifestPath(), "hashes, versions, options"},
	} {
		if empty(item.path) {
			continue
		}
		name, err := filepath.Rel(dir.Path(), item.path)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "  %-16s %s\n", name, item.meaning); err != nil {
			return err
		}
	}
	return nil
}

// empty tells whether there is nothing at path: no file, or an empty folder.
func empty(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return true
	}
	if !info.IsDir() {
		return info.Size() == 0
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// discard removes a run directory whose run never started.
func discard(dir rundir.Dir) error { return os.RemoveAll(dir.Path()) }
