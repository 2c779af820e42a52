package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"gonbatch/internal/plural"
)

// Sweep are the runs of a sweep that were submitted. Its name stands for all of them in other
// commands.
type Sweep struct {
	Sweep string     `json:"sweep"`
	Runs  []SweepRun `json:"runs"`
	// Staged is how many of the runs are only staged, because SLURM doesn't take more jobs for now:
	// Full is its answer.
	Staged int    `json:"staged,omitempty"`
	Full   string `json:"full,omitempty"`
}

// SweepRun is a run of a sweep, with its values of the parameters and flags that are swept.
type SweepRun struct {
	Settings  string `json:"settings"`
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Job       string `json:"job,omitempty"`
}

// Text writes a table, and what to do next.
func (s Sweep) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range s.Runs {
		fmt.Fprintf(table, "%s\t%s\t%s\n", dash(r.Job), r.Run, r.Settings)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s of the sweep %s\n", plural.Of(len(s.Runs), "run"), s.Sweep)
	if s.Staged > 0 {
		fmt.Fprintf(w, "%s staged, not queued: %s\nqueue them:    submit resume -F %s, which goes on until all have ended\n", plural.Of(s.Staged, "run"), s.Full, s.Sweep)
	}
	_, err := fmt.Fprintf(w, "compare them:  submit compare %s\n", s.Sweep)
	return err
}
