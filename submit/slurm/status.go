package slurm

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"gonbatch/submit"
)

// The lines of "scontrol show job" that are read. Each begins a line, so that no job name can pass for one.
var (
	stateLine    = regexp.MustCompile(`(?m)^\s+JobState=(\S+) Reason=(.*?)(?: Dependency=.*)?$`)
	exitLine     = regexp.MustCompile(`(?m)^\s+Requeue=.*\bExitCode=(\d+):(\d+)`)
	restartsLine = regexp.MustCompile(`(?m)^\s+Requeue=\d+ Restarts=(\d+)`)
	nodesLine    = regexp.MustCompile(`(?m)^\s+NodeList=(\S+)`)
)

// Status asks scontrol, and looks at the run directory's files when SLURM has forgotten the job.
func (s *Scheduler) Status(ctx context.Context, job submit.Job) (submit.Status, error) {
	out, err := s.runner.Run(ctx, "scontrol", append(clusterArgs(job), "show", "job", string(job.ID))...)
	if forgotten(err) {
		return fromFiles(job)
	}
	if err != nil {
		return submit.Status{}, fmt.Errorf("status of job %s: %w", job.ID, err)
	}
	status, err := parseStatus(string(out))
	if err != nil {
		return submit.Status{}, fmt.Errorf("status of job %s: %w", job.ID, err)
	}
	if status.State.Ended() && status.State != submit.Completed {
		status.FailedRank = failedRank(job.Dir)
	}
	return status, nil
}

// parseStatus reads what "scontrol show job" prints for one job.
func parseStatus(text string) (submit.Status, error) {
	m := stateLine.FindStringSubmatch(text)
	if m == nil {
		return submit.Status{}, fmt.Errorf("scontrol show job printed no JobState: %q", text)
	}
	status := submit.Status{Raw: m[1], State: parseState(m[1]), Reason: unset(m[2])}
	status.Explanation = explain(status.Reason)
	if m := exitLine.FindStringSubmatch(text); m != nil {
		status.ExitCode, status.Signal = atoi(m[1]), atoi(m[2])
	}
	if status.State == submit.Failed {
		status.State = submit.OfCode(max(status.ExitCode, 1))
	}
	if status.State == submit.Stopped {
		status.Reason, status.Explanation = "", "" // SLURM's are those of a failure.
	}
	if m := restartsLine.FindStringSubmatch(text); m != nil {
		status.Restarts = atoi(m[1])
	}
	if m := nodesLine.FindStringSubmatch(text); m != nil {
		status.Nodes = unset(m[1])
	}
	return status, nil
}

// unset turns SLURM's words for nothing into none.
func unset(word string) string {
	if word == "None" || word == "(null)" {
		return ""
	}
	return word
}

// atoi reads digits that a pattern has matched; a number too big for an int is as good as the biggest.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
