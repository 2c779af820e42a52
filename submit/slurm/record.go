package slurm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// record is what "scontrol show job" prints of one job.
type record struct{ text string }

// The lines of a record that are read. Each begins a line, so that no job name can pass for one.
var (
	recordStart  = regexp.MustCompile(`(?m)^JobId=([0-9]+)`)
	stateLine    = regexp.MustCompile(`(?m)^\s+JobState=(\S+) Reason=(.*?)(?: Dependency=.*)?$`)
	exitLine     = regexp.MustCompile(`(?m)^\s+Requeue=.*\bExitCode=(\d+):(\d+)`)
	restartsLine = regexp.MustCompile(`(?m)^\s+Requeue=\d+ Restarts=(\d+)`)
	nodesLine    = regexp.MustCompile(`(?m)^\s+NodeList=(\S+)`)
	commandLine  = regexp.MustCompile(`(?m)^\s+Command=(.*)$`)
	stdoutLine   = regexp.MustCompile(`(?m)^\s+StdOut=(.*)$`)
)

// records splits what "scontrol show job" prints of several jobs.
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

// field is what a pattern's first group finds; "" for nothing.
func (r record) field(pattern *regexp.Regexp) string {
	if m := pattern.FindStringSubmatch(r.text); m != nil {
		return m[1]
	}
	return ""
}

func (r record) id() submit.JobID { return submit.JobID(r.field(recordStart)) }

// runs reports whether the job is that of a run: its script is the run's, or its output goes to the
// run's logs. Clusters use the ids of jobs again, and each has its own.
func (r record) runs(dir rundir.Dir) bool {
	return samePath(r.field(commandLine), dir.Script()) || samePath(filepath.Dir(r.field(stdoutLine)), dir.Logs())
}

// samePath reports whether SLURM's path names the file at another, also by way of links. Where
// SLURM knows none it shows "" or "(null)": relative paths, which could be of any file here.
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

// status reads the job's state.
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
	if status.State == submit.Stopped {
		status.Reason, status.Explanation = "", "" // SLURM's are those of a failure.
	}
	status.Restarts = atoi(r.field(restartsLine))
	status.Nodes = unset(r.field(nodesLine))
	return status, nil
}

// unset turns SLURM's words for nothing into none.
func unset(word string) string {
	if word == "None" || word == "(null)" {
		return ""
	}
	return word
}

// atoi reads digits that a pattern has matched; a number too big for an int is as good as the
// biggest.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
