package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"gonbatch/rundir"
	"gonbatch/submit"
)

// fromFiles judges a job that SLURM has forgotten: by what its script wrote as it ended, else by the last state that
// the manifest has. A job with neither is lost.
func fromFiles(job submit.Job) (submit.Status, error) {
	code, ended, err := readExitStatus(job)
	if err != nil {
		return submit.Status{}, err
	}
	if ended {
		return exitStatus(job, code), nil
	}
	m, err := rundir.ReadManifest(job.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return submit.Status{}, err
	}
	if state := submit.State(m.State); state.Ended() && m.JobID == string(job.ID) {
		status := submit.Status{State: state, Reason: m.Reason, Explanation: explain(m.Reason), FailedRank: failedRank(job.Dir)}
		if m.ExitCode != nil {
			status.ExitCode = *m.ExitCode
		}
		return status, nil
	}
	return submit.Status{
		State:       submit.Lost,
		FailedRank:  failedRank(job.Dir),
		Explanation: "SLURM no longer knows the job and it did not record its end: it was cancelled, or ran out of time or memory, or its node failed; its last words are in " + job.Dir.SchedulerLog(),
	}, nil
}

// readExitStatus reads the script's own record of its end; one of another job does not count.
func readExitStatus(job submit.Job) (code int, ended bool, err error) {
	data, err := os.ReadFile(job.Dir.ExitStatus())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("status of job %s: %w", job.ID, err)
	}
	var id string
	if _, err := fmt.Sscanf(strings.TrimSpace(string(data)), "%s %d", &id, &code); err != nil {
		return 0, false, fmt.Errorf("status of job %s: %s has %q, not a job id and an exit code", job.ID, job.Dir.ExitStatus(), data)
	}
	return code, id == string(job.ID), nil
}

func exitStatus(job submit.Job, code int) submit.Status {
	status := submit.Status{State: submit.OfCode(code), ExitCode: code}
	if status.State == submit.Failed {
		status.FailedRank = failedRank(job.Dir)
	}
	return status
}
