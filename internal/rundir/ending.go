package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Ending is the job's record of how SLURM ended this start of the job, for clusters
// without accounting.
type Ending struct {
	JobID string
	// State and Reason are SLURM's own words: "COMPLETING", "TimeLimit".
	State, Reason string
}

// EndingPath returns the path of the file with the Ending: "<job id> <state> <reason>".
func (d Dir) EndingPath() string { return d.join("ending") }

// Write records how the scheduler ends this start.
func (e Ending) Write(d Dir) error {
	return WriteFileAtomic(d.EndingPath(), fmt.Appendln(nil, e.JobID, e.State, e.Reason), 0o600)
}

// WriteExitStatus records how a job ends.
func WriteExitStatus(d Dir, jobID string, code int) error {
	return WriteFileAtomic(d.ExitStatus(), fmt.Appendln(nil, jobID, code), 0o600)
}

// ForgetEnd removes what an earlier start has recorded about its end.
func ForgetEnd(d Dir) error {
	if err := errors.Join(remove(d.ExitStatus()), remove(d.EndingPath())); err != nil {
		return fmt.Errorf("forget the end of an earlier start: %w", err)
	}
	return ClearFailure(d)
}

// remove removes a file, if it is there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// AppendLog appends a line to a log of the run.
func AppendLog(path, line string) error { return appendLine(path, line) }

// ReadEnding reads the Ending of the run's last start. The error is fs.ErrNotExist if there is
// none.
func ReadEnding(d Dir) (Ending, error) {
	text, err := ReadFile(d.EndingPath())
	if err != nil {
		return Ending{}, fmt.Errorf("ending of run %s: %w", d.Name(), err)
	}
	words := append(strings.Fields(string(text)), "", "", "")
	return Ending{JobID: words[0], State: words[1], Reason: words[2]}, nil
}
