package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// record is the output of "scontrol show job" for one job.
type record struct{ text string }

// The fields of a record. Each pattern begins at the start of a line, so that no job name can match
// it.
var (
	recordStart  = regexp.MustCompile(`(?m)^JobId=([0-9]+)`)
	stateLine    = regexp.MustCompile(`(?m)^\s+JobState=(\S+) Reason=(.*?)(?: Dependency=.*)?$`)
	exitLine     = regexp.MustCompile(`(?m)^\s+Requeue=.*\bExitCode=(\d+):(\d+)`)
	restartsLine = regexp.MustCompile(`(?m)^\s+Requeue=\d+ Restarts=(\d+)`)
	nodesLine    = regexp.MustCompile(`(?m)^\s+NodeList=(\S+)`)
	commandLine  = regexp.MustCompile(`(?m)^\s+Command=(.*)$`)
	stdoutLine   = regexp.MustCompile(`(?m)^\s+StdOut=(.*)$`)
)

// records splits the output of "scontrol show job" for several jobs.
func records(text string) []record {
	var all []record
	starts := recordStart.FindAllStringIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		all = append(all, record{text[at[0]:end]})
	}
	return all
}

// field returns the match of a pattern's first group; "" if there is none.
func (r record) field(pattern *regexp.Regexp) string {
	if m := pattern.FindStringSubmatch(r.text); m != nil {
		return m[1]
	}
	return ""
}

func (r record) id() submit.JobID { return submit.JobID(r.field(recordStart)) }

// runs reports whether the job belongs to a run: its script is the run's, or its output goes to the
// run's logs. The id isn't enough, because clusters reuse ids, and each cluster has its own.
func (r record) runs(dir rundir.Dir) bool {
	return isScript(r.field(commandLine), dir) || samePath(filepath.Dir(r.field(stdoutLine)), dir.Logs())
}

// isScript reports whether SLURM's path of a job's script is the run's, also if the run directory
// has been moved since: its name has a time and random characters.
func isScript(slurms string, dir rundir.Dir) bool {
	if samePath(slurms, dir.Script()) {
		return true
	}
	_, err := os.Lstat(slurms)
	return filepath.Base(slurms) == filepath.Base(dir.Script()) && filepath.Base(filepath.Dir(slurms)) == dir.Name() && errors.Is(err, fs.ErrNotExist)
}

// samePath reports whether SLURM's path names the same file as b, even through links. An unknown
// path is "" or "(null)" in SLURM: it counts as relative, which could name any file here.
func samePath(slurms, b string) bool {
	if !filepath.IsAbs(slurms) {
		return false
	}
	if slurms == b {
		return true
	}
	one, err := os.Stat(slurms)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// status parses the job's status.
func (r record) status() (submit.Status, error) {
	m := stateLine.FindStringSubmatch(r.text)
	if m == nil {
		return submit.Status{}, fmt.Errorf("scontrol show job printed no JobState: %q", r.text)
	}
	status := submit.Status{Raw: m[1], State: parseState(m[1]), Reason: unset(m[2]), Ending: m[1] == completing}
	status.Explanation = explain(status.Reason)
	if m := exitLine.FindStringSubmatch(r.text); m != nil {
		status.ExitCode, status.Signal = atoi(m[1]), atoi(m[2])
	}
	if status.State == submit.Failed {
		status.State = submit.OfCode(max(status.ExitCode, 1))
	}
	dependency := status.Reason == "DependencyNeverSatisfied" // SLURM cancels a job that waits for one that has failed.
	if status.State == submit.Stopped || status.State == submit.Completed || status.State == submit.Cancelled && !dependency {
		status.Reason, status.Explanation = "", "" // SLURM's reason is that of a failure, or why the job waited, long ago.
	}
	if status.State == submit.Cancelled && dependency {
		status.Explanation = "a job that it waited for did not succeed"
	}
	status.Restarts = atoi(r.field(restartsLine))
	status.Nodes = unset(r.field(nodesLine))
	return status, nil
}

// unset turns SLURM's words for no value into "".
func unset(word string) string {
	if word == "None" || word == "(null)" {
		return ""
	}
	return word
}

// atoi parses digits that a pattern has matched; a number that is too big gives the largest int.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
