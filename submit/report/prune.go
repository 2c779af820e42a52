package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"gonbatch/internal/plural"
)

// Pruned are runs that were removed or, if Sure isn't set, would be.
type Pruned struct {
	Sure bool        `json:"removed"`
	Runs []PrunedRun `json:"runs"`
}

// PrunedRun is a run that was removed, or would be, unless Kept says why it stays. Bytes is the
// disk space that only this run takes.
type PrunedRun struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	State     string `json:"state"`
	Bytes     int64  `json:"bytes"`
	Kept      string `json:"kept,omitempty"`
}

// Text writes the runs, and the space that they took.
func (p Pruned) Text(w io.Writer) error {
	var bytes int64
	removed := 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range p.Runs {
		what := "remove"
		switch {
		case r.Kept != "":
			what = "kept: " + r.Kept
		case p.Sure:
			what = "removed"
		}
		if r.Kept == "" {
			bytes += r.Bytes
			removed++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Run, r.State, size(r.Bytes), what)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	end := "; to remove them, add --yes"
	if p.Sure || removed == 0 {
		end = ""
	}
	_, err := fmt.Fprintf(w, "%s, %s%s\n", plural.Of(removed, "run"), size(bytes), end)
	return err
}
