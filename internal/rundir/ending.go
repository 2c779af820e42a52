package rundir

import (
	"fmt"
	"os"
	"strings"
)

// Ending is the batch script's record of how SLURM ended this start of the job, for clusters
// without accounting.
type Ending struct {
	JobID string
	// State and Reason are SLURM's own words: "COMPLETING", "TimeLimit".
	State, Reason string
}

// EndingPath returns the path of the file with the Ending: "<job id> <state> <reason>".
func (d Dir) EndingPath() string { return d.join("ending") }

// ReadEnding reads the Ending of the run's last start. The error is fs.ErrNotExist if there is
// none.
func ReadEnding(d Dir) (Ending, error) {
	text, err := os.ReadFile(d.EndingPath())
	if err != nil {
		return Ending{}, fmt.Errorf("ending of run %s: %w", d.Name(), err)
	}
	words := append(strings.Fields(string(text)), "", "", "")
	return Ending{JobID: words[0], State: words[1], Reason: words[2]}, nil
}
