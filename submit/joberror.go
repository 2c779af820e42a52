package submit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
)

// JobError is the error of a job that did not succeed, with the reason as far as its logs show it.
type JobError struct {
	Job    Job
	Status Status
	// Failure is the failure that the ranks recorded; nil if there is none.
	Failure *rundir.Failure
	// Cause is the line of the failed rank's log that says what went wrong; "" if none was found.
	Cause string
	// Trace are the lines that may contain the place where the rank failed. Place is that place, as
	// cell and line of the notebook with the line quoted; "" until code that can read notebooks
	// sets it.
	Trace []string
	Place string
	// Repeated describes that the last two starts died at the same update; "" if they did not.
	Repeated string
	// Log is the failed rank's log, and LastLines are its last lines.
	Log       string
	LastLines []string
}

// How many lines of a failed rank's log are searched for the cause, and how many are shown.
const (
	searchedLines = 400
	shownLines    = 20
)

// NewJobError reads the failure that the ranks recorded, or else the failed rank's log. It leaves
// out files that it cannot read.
func NewJobError(job Job, status Status) *JobError {
	e := &JobError{Job: job, Status: status}
	if status.State == Stopped {
		return e
	}
	e.Repeated = repeated(job.Dir)
	if f, err := rundir.ReadFailure(job.Dir); err == nil {
		e.Failure, e.Status.FailedRank, e.LastLines = &f, f.Rank, f.LogTail
		e.Log = job.Dir.RankLog(f.Rank)
		e.Trace = append([]string{f.Error}, f.LogTail...)
		return e
	}
	e.Log = job.Dir.RankLog(status.FailedRank)
	lines, _ := LastLines(job.Dir, e.Log, searchedLines)
	e.Cause = cause(lines)
	if end, failed := rundir.LastFailed(job.Dir); failed && !end.Told && e.Cause == "" {
		e.Cause = describeEnd(end)
	}
	if len(lines) == 0 || e.Cause == "" && status.State == Failed { // Not because of a rank.
		if said, err := LastLines(job.Dir, job.Dir.SchedulerLog(), searchedLines); err == nil {
			e.Log, lines = job.Dir.SchedulerLog(), said
		}
	}
	e.Trace, e.LastLines = lines, lines[max(0, len(lines)-shownLines):]
	return e
}

// describeEnd describes how a rank's program failed: "exit code 3 on n2".
func describeEnd(end rundir.End) string {
	text := fmt.Sprintf("exit code %d", end.Code)
	if end.Code > 128 {
		signal := syscall.Signal(end.Code - 128)
		text = fmt.Sprintf("ended by signal %d (%s)", signal, signal)
	}
	if end.Host != "" {
		text += " on " + end.Host
	}
	return text
}

// Error names the job, its state, the cause and the log, and quotes the log's end. For a stopped
// job it gives the command that resumes it.
func (e *JobError) Error() string {
	var b strings.Builder
	if e.Job.ID != "" {
		fmt.Fprintf(&b, "job %s (%s): ", e.Job.ID, e.Job.Dir.Name())
	} else {
		fmt.Fprintf(&b, "run %s: ", e.Job.Dir.Name())
	}
	b.WriteString(e.Status.String())
	if e.Status.State == Stopped {
		fmt.Fprintf(&b, "; its work is saved; resume it with: %s", ResumeCommand(e.Job.Dir))
		return b.String()
	}
	if e.Status.ExitCode != 0 {
		fmt.Fprintf(&b, ", exit code %d", e.Status.ExitCode)
	}
	if e.Status.Signal != 0 {
		fmt.Fprintf(&b, ", signal %d", e.Status.Signal)
	}
	b.WriteString(e.describeCause())
	if e.Repeated != "" {
		b.WriteString("\n" + e.Repeated)
	}
	if e.Place != "" {
		b.WriteString("\n" + e.Place)
	}
	if len(e.LastLines) > 0 {
		fmt.Fprintf(&b, "\nlast lines of %s:\n  %s", e.Log, strings.Join(e.LastLines, "\n  "))
	}
	return b.String()
}

// repeated returns a message if the run's last two starts died at the same update, and so there was
// no restart; else "".
func repeated(dir rundir.Dir) string {
	before, last, err := rundir.LastDeaths(dir)
	starts, countErr := rundir.CountStarts(dir)
	if err != nil || countErr != nil || last.Start != starts || !last.Repeats(before) {
		return ""
	}
	return DescribeRepeat(last)
}

// DescribeRepeat explains that a run is not started again because its last two starts died at the
// same update.
func DescribeRepeat(d rundir.Death) string {
	return DescribeDeath(d) + " in two starts in a row: that is a bug, not bad luck, so it is not started again"
}

// DescribeDeath describes which cell died, and where: "cell train died after update 60".
func DescribeDeath(d rundir.Death) string {
	if d.Update == 0 {
		return fmt.Sprintf("cell %s died before its first update", d.Cell)
	}
	return fmt.Sprintf("cell %s died after update %d", d.Cell, d.Update)
}

// describeCause describes which rank failed first, and why.
func (e *JobError) describeCause() string {
	switch {
	case e.Failure != nil:
		return "\n" + DescribeFailure(*e.Failure)
	case e.Cause != "":
		return fmt.Sprintf("\nrank %d: %s", e.Status.FailedRank, e.Cause)
	}
	return ""
}

// DescribeFailure describes a recorded failure: "rank 1 on n2 (stuck) after step 40: ...".
func DescribeFailure(f rundir.Failure) string {
	text := fmt.Sprintf("rank %d", f.Rank)
	if f.Host != "" {
		text += " on " + f.Host
	}
	if f.Kind != "" {
		text += fmt.Sprintf(" (%s)", f.Kind)
	}
	if f.Step > 0 {
		text += fmt.Sprintf(" after step %d", f.Step)
	}
	text += ": " + f.Error
	for _, rank := range f.Ranks {
		text += "\n  " + rank
	}
	return text
}

// shellFailure matches the message of a shell command's script when the command failed.
var shellFailure = regexp.MustCompile(`^gonbatch: (.+, cell (?:\d+|\[\d+\]).*, line \d+: .* ended with exit code \d+)$`)

// goFailures begin Go's message about a failed program.
var goFailures = []string{"panic: ", "fatal error: "}

// GoFailure returns the first of a log's lines from where Go's message about a failed program
// begins in it; "" if it doesn't. The program may have left the line before unfinished: then the
// trace of a goroutine must follow.
func GoFailure(lines []string) string {
	for _, begins := range goFailures {
		switch at := strings.Index(lines[0], begins); {
		case at == 0:
			return lines[0]
		case at > 0 && slices.ContainsFunc(lines[1:min(4, len(lines))], func(l string) bool { return strings.HasPrefix(l, "goroutine ") }):
			return lines[0][at:]
		}
	}
	return ""
}

// cause finds the first failed shell command or Go failure in lines, the latter with the first
// place in the notebook that its trace names.
func cause(lines []string) string {
	for i, line := range lines {
		if m := shellFailure.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		failure := GoFailure(lines[i:])
		if failure == "" {
			continue
		}
		for _, frame := range lines[i:] {
			if places := nbformat.Places(frame); len(places) > 0 && !strings.Contains(failure, places[0]) {
				return failure + " (at " + places[0] + ")"
			}
		}
		return failure
	}
	return ""
}
