package submit

import (
	"fmt"
	"regexp"
	"strings"

	"gonbatch/internal/rundir"
)

// JobError says that a job ended without success, and why as far as its logs tell.
type JobError struct {
	Job    Job
	Status Status
	// Failure is what the ranks recorded of their failure; nil where they recorded none.
	Failure *rundir.Failure
	// Cause is the line of the failing rank's log that says what went wrong; "" where none was
	// found.
	Cause string
	// Trace are the lines that may name the place where the rank failed. Place is the cell and line
	// of the notebook, with the line quoted; "" until somebody who can read notebooks sets it.
	Trace []string
	Place string
	// Repeated says that the run died where its start before had died; "" where it did not.
	Repeated string
	// Log is the failing rank's log, and LastLines are its end.
	Log       string
	LastLines []string
}

// How much of a failing rank's log is searched for the cause, and how much is shown.
const (
	searchedLines = 400
	shownLines    = 20
)

// NewJobError reads what the ranks recorded of their failure, or else the failing rank's log. What
// cannot be read is left out.
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
	lines, err := LastLines(job.Dir, e.Log, searchedLines)
	if err != nil {
		e.Log = job.Dir.SchedulerLog()
		lines, _ = LastLines(job.Dir, e.Log, searchedLines)
	}
	e.Cause, e.Trace = cause(lines), lines
	e.LastLines = lines[max(0, len(lines)-shownLines):]
	return e
}

// Error names the job, its state, the cause and the log, and quotes the log's end. Of a job that
// was stopped it says how to resume.
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

// repeated says that the run's last start died where the one before did, which is why there was no
// other.
func repeated(dir rundir.Dir) string {
	before, last, err := rundir.LastDeaths(dir)
	starts, countErr := rundir.CountStarts(dir)
	if err != nil || countErr != nil || last.Start != starts || !last.Repeats(before) {
		return ""
	}
	return DescribeRepeat(last)
}

// DescribeRepeat says why a run is not started again: its last two starts died at the same update.
func DescribeRepeat(d rundir.Death) string {
	return DescribeDeath(d) + " in two starts in a row: that is a bug, not bad luck, so it is not started again"
}

// DescribeDeath says what died, and where: "cell train died after update 60".
func DescribeDeath(d rundir.Death) string {
	if d.Update == 0 {
		return fmt.Sprintf("cell %s died before its first update", d.Cell)
	}
	return fmt.Sprintf("cell %s died after update %d", d.Cell, d.Update)
}

// describeCause says which rank failed first, and why.
func (e *JobError) describeCause() string {
	switch {
	case e.Failure != nil:
		return "\n" + DescribeFailure(*e.Failure)
	case e.Cause != "":
		return fmt.Sprintf("\nrank %d: %s", e.Status.FailedRank, e.Cause)
	}
	return ""
}

// DescribeFailure is what the ranks recorded, in words: "rank 1 on n2 (stuck) after step 40: ...".
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

var (
	// shellFailure is what the script of a shell command says when the command failed.
	shellFailure = regexp.MustCompile(`^gonbatch: (.+, cell \d+.*, line \d+: .* ended with exit code \d+)$`)
	// cellPlace is a position in a notebook's cell, as exported programs report it.
	cellPlace = regexp.MustCompile(`[^\s/]*\.ipynb\[[^\]]*\]:\d+`)
)

// IsGoFailure reports whether a line of a log is how Go begins to say that a program failed.
func IsGoFailure(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// cause finds the first failed shell command or Go failure in lines, that with the place in the
// notebook that its trace names first.
func cause(lines []string) string {
	for i, line := range lines {
		if m := shellFailure.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if !IsGoFailure(line) {
			continue
		}
		for _, frame := range lines[i:] {
			if place := cellPlace.FindString(frame); place != "" && !strings.Contains(line, place) {
				return line + " (at " + place + ")"
			}
		}
		return line
	}
	return ""
}
