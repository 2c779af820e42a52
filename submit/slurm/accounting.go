package slurm

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// sacctTime is sacct's format of times: local, to the second.
const sacctTime = "2006-01-02T15:04:05"

// mostAsked is how many jobs one query is about.
const mostAsked = 500

// accounts knows from SLURM's accounting how forgotten jobs ended. At the first question about a
// cluster, it asks about all its jobs there. Its methods may be called concurrently.
type accounts struct {
	scheduler *Scheduler
	jobs      []submit.Job

	mu    sync.Mutex
	lines map[string]map[submit.JobID]string // By cluster.
}

func (s *Scheduler) accountsOf(jobs ...submit.Job) *accounts {
	return &accounts{scheduler: s, jobs: jobs, lines: map[string]map[submit.JobID]string{}}
}

// status returns how a forgotten job ended. Many clusters have no accounting, or hide it from
// users: that is not an error, and status doesn't try again.
func (a *accounts) status(ctx context.Context, job submit.Job, m rundir.Manifest) (submit.Status, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lines[job.Cluster] == nil {
		a.lines[job.Cluster] = map[submit.JobID]string{}
		a.ask(ctx, job.Cluster, a.jobs)
	}
	if !slices.ContainsFunc(a.jobs, func(asked submit.Job) bool { return asked.ID == job.ID && asked.Cluster == job.Cluster }) {
		a.jobs = append(a.jobs, job)
		a.ask(ctx, job.Cluster, []submit.Job{job})
	}
	return parseAccount(a.lines[job.Cluster][job.ID], job.Dir, m)
}

// ask asks a cluster about those of the jobs that are its own.
func (a *accounts) ask(ctx context.Context, cluster string, jobs []submit.Job) {
	var ids []string
	for _, job := range jobs {
		if job.Cluster == cluster {
			ids = append(ids, string(job.ID))
		}
	}
	for some := range slices.Chunk(ids, mostAsked) {
		if a.scheduler.noAccounting.Load() {
			return
		}
		out, err := a.scheduler.runner.Run(ctx, "sacct", clusterArgs(cluster, "--noheader", "--parsable2", "--allocations",
			"--jobs="+strings.Join(some, ","), "--format=JobID,State,ExitCode,Submit")...)
		if err != nil {
			a.scheduler.noAccounting.Store(true)
			return
		}
		for line := range strings.Lines(string(out)) { // The last line of a job is its newest.
			id, rest, _ := strings.Cut(strings.TrimSpace(line), "|")
			a.lines[cluster][submit.JobID(id)] = rest
		}
	}
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
