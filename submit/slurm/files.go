package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// forgotten returns the status of a job that SLURM no longer knows, from the first source that has
// one: its script's record of the end, SLURM's accounting, the manifest, and the messages at the
// end. Without any of these, the job is lost.
func (a *accounts) forgotten(ctx context.Context, job submit.Job) (submit.Status, error) {
	status, ended, err := recordedEnd(job)
	if ended || err != nil {
		return status, err
	}
	m, err := rundir.ReadManifest(job.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return submit.Status{}, err
	}
	if status, ok := a.status(ctx, job, m); ok {
		status.FailedRank = failedRank(job.Dir)
		return status, nil
	}
	if status, ok := fromManifest(job, m); ok {
		return status, nil
	}
	return inferred(job)
}

// fromManifest returns the job's end from the manifest. It ignores the state lost, because the
// query may have gone to the wrong cluster.
func fromManifest(job submit.Job, m rundir.Manifest) (submit.Status, bool) {
	state := submit.State(m.State)
	if !state.Ended() || state == submit.Lost || m.JobID != string(job.ID) {
		return submit.Status{}, false
	}
	status := submit.RecordedStatus(m)
	status.FailedRank = failedRank(job.Dir)
	return status, true
}

// recordedEnd reads the script's own record of its end; it ignores another job's record.
func recordedEnd(job submit.Job) (status submit.Status, ended bool, err error) {
	data, err := rundir.ReadFile(job.Dir.ExitStatus())
	if errors.Is(err, fs.ErrNotExist) {
		return status, false, nil
	}
	if err != nil {
		return status, false, fmt.Errorf("status of job %s: %w", job.ID, err)
	}
	var id string
	var code int
	if _, err := fmt.Sscanf(strings.TrimSpace(string(data)), "%s %d", &id, &code); err != nil {
		return status, false, fmt.Errorf("status of job %s: %s has %q, not a job id and an exit code", job.ID, job.Dir.ExitStatus(), data)
	}
	if id != string(job.ID) {
		return status, false, nil
	}
	status = submit.Status{State: submit.OfCode(code), ExitCode: code}
	if status.State == submit.Failed {
		status.FailedRank = failedRank(job.Dir)
	}
	return status, true, nil
}
