package slurm

import (
	"context"
	"os"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// sacctTime is sacct's format of times: local, to the second.
const sacctTime = "2006-01-02T15:04:05"

// accounted asks SLURM's accounting how a forgotten job ended. Many clusters have no accounting, or
// hide it from users: that is not an error, and accounted doesn't try again.
func (s *Scheduler) accounted(ctx context.Context, job submit.Job, m rundir.Manifest) (submit.Status, bool) {
	if s.noAccounting.Load() {
		return submit.Status{}, false
	}
	out, err := s.runner.Run(ctx, "sacct", clusterArgs(job.Cluster, "--noheader", "--parsable2", "--allocations",
		"--jobs="+string(job.ID), "--format=State,ExitCode,Submit")...)
	if err != nil {
		s.noAccounting.Store(true)
		return submit.Status{}, false
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return parseAccount(lines[len(lines)-1], job.Dir, m)
}

// parseAccount reads a line of sacct, "CANCELLED by 1000|0:15|2026-11-21T10:15:00". It ignores a
// line of another job with the same id, and of a job that accounting believes to be running.
func parseAccount(line string, dir rundir.Dir, m rundir.Manifest) (submit.Status, bool) {
	fields := strings.Split(line, "|")
	if len(fields) != 3 || !submittedThen(fields[2], dir, m) {
		return submit.Status{}, false
	}
	status := submit.Status{Raw: fields[0], State: parseState(fields[0])}
	code, signal, _ := strings.Cut(fields[1], ":")
	status.ExitCode, status.Signal = atoi(code), atoi(signal)
	switch status.State {
	case submit.Failed:
		status.State = submit.OfCode(max(status.ExitCode, 1))
	case submit.TimedOut:
		status.Reason, status.Explanation = timeLimit, explain(timeLimit)
	}
	return status, status.State.Ended()
}

// submittedThen reports whether a job that was submitted at a time can be the run's. It allows a
// day for differences of clocks and time zones.
func submittedThen(text string, dir rundir.Dir, m rundir.Manifest) bool {
	at, err := time.ParseInLocation(sacctTime, text, time.Local)
	if err != nil {
		return false
	}
	const day = 24 * time.Hour
	if m.Submitted == nil {
		return at.After(m.Created.Add(-day))
	}
	return at.After(m.Submitted.Add(-day)) && at.Before(lastQueued(dir, *m.Submitted).Add(day))
}

// lastQueued returns the latest time at which the run's job may have been requeued, which SLURM
// counts as its submission. It is when the log was last written, because the start that ends then
// writes to it.
func lastQueued(dir rundir.Dir, submitted time.Time) time.Time {
	info, err := os.Stat(dir.SchedulerLog())
	if err != nil || info.ModTime().Before(submitted) {
		return submitted
	}
	return info.ModTime()
}
