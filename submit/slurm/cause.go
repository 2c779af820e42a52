package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// completing is SLURM's state of a job whose last processes are ending, and timeLimit its reason
// for a job that reached its time limit.
const (
	completing = "COMPLETING"
	timeLimit  = "TimeLimit"
)

// stepdEnded is the line that slurmstepd writes to the job's log as SLURM ends it: "slurmstepd-n1:
// error: *** JOB 12 ON n1 CANCELLED AT 2026-11-21T10:15:00 DUE TO TIME LIMIT ***". The line of a
// cancelled job has no DUE TO.
var stepdEnded = regexp.MustCompile(`^(?:slurmstepd|\[\S+\]).* error: \*\*\* JOB ([0-9]+) ON \S+ CANCELLED AT \S+?(?: DUE TO (.+?))? \*\*\*$`)

// stepdCauses are the beginnings of the causes that slurmstepd names, and the states that follow
// from them.
var stepdCauses = []struct {
	cause string
	state submit.State
}{
	{"TIME LIMIT", submit.TimedOut}, {"PREEMPTION", submit.Preempted}, {"NODE FAILURE", submit.NodeFailed}, {"JOB REQUEUE", submit.Pending},
}

// inferred infers a job's state from the messages at its end: slurmstepd's in the job's log, and
// the job's own record.
func inferred(job submit.Job) (submit.Status, error) {
	status := submit.Status{Inferred: true, FailedRank: failedRank(job.Dir)}
	state, err := endingState(job)
	if err != nil {
		return status, err
	}
	switch state {
	case submit.Unknown:
		status.State, status.Explanation = submit.Lost, lostBecause(job)
	case submit.TimedOut:
		status.State, status.Reason, status.Explanation = state, timeLimit, explain(timeLimit)
	case submit.Pending:
		status.State, status.Explanation = submit.Lost, "SLURM requeued the job and has since forgotten it: it was cancelled before that, or it is on another cluster"
	default:
		status.State, status.Explanation = state, "SLURM no longer knows the job; this is the reason that it wrote to "+job.Dir.SchedulerLog()
	}
	return status, nil
}

// endingState returns the state that follows from the job's files; Unknown if they show nothing.
func endingState(job submit.Job) (submit.State, error) {
	if state := saidByStepd(job); state != submit.Unknown {
		return state, nil
	}
	ending, err := rundir.ReadEnding(job.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return submit.Unknown, nil
	}
	if err != nil {
		return submit.Unknown, err
	}
	switch {
	case ending.JobID != string(job.ID), ending.State != completing: // Somebody only told the script to save.
		return submit.Unknown, nil
	case ending.Reason == timeLimit:
		return submit.TimedOut, nil
	}
	return submit.Cancelled, nil
}

// saidByStepd returns the state from slurmstepd's last line about the job's last start.
func saidByStepd(job submit.Job) submit.State {
	lines, err := submit.LastLines(job.Dir, job.Dir.SchedulerLog(), searchedLines)
	if err != nil {
		return submit.Unknown
	}
	state := submit.Unknown
	for _, line := range lines {
		if strings.HasPrefix(line, "gonbatch: job "+string(job.ID)+", start ") {
			state = submit.Unknown
		}
		if m := stepdEnded.FindStringSubmatch(line); m != nil && m[1] == string(job.ID) {
			state = causeState(m[2])
		}
	}
	return state
}

func causeState(cause string) submit.State {
	for _, c := range stepdCauses {
		if strings.HasPrefix(cause, c.cause) {
			return c.state
		}
	}
	return submit.Cancelled
}

// lostBecause describes what may have happened to a job that left no record of its end.
func lostBecause(job submit.Job) string {
	start, err := rundir.LastStart(job.Dir)
	if err == nil && start.ID != string(job.ID) {
		return "SLURM no longer knows the job, and it never started: it was cancelled while it waited"
	}
	if _, err := os.Stat(job.Dir.SchedulerLog()); err != nil {
		return "SLURM no longer knows the job, and it has left no log"
	}
	return fmt.Sprintf("SLURM no longer knows the job, and left no reason for its end: it was killed without notice (out of memory?), or its node failed; see the end of %s", job.Dir.SchedulerLog())
}
