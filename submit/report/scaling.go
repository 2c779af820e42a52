package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Scaling compares the speeds of a notebook's training in several sizes.
type Scaling struct {
	Sweep string       `json:"sweep"`
	Runs  []ScalingRun `json:"runs"`
}

// ScalingRun is a run of a scaling. Speedup is its speed divided by the first run's, and Efficiency
// is that divided by how many times more ranks it has; 0 if a speed isn't known. DataWait is the
// share of time in which the training waited for data.
type ScalingRun struct {
	Run               string  `json:"run"`
	Nodes             int     `json:"nodes"`
	Ranks             int     `json:"ranks"`
	State             string  `json:"state"`
	ExamplesPerSecond float64 `json:"examples_per_second"`
	Speedup           float64 `json:"speedup"`
	Efficiency        float64 `json:"efficiency"`
	DataWait          float64 `json:"data_wait"`
}

// Text writes a table.
func (s Scaling) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODES\tRANKS\tEXAMPLES/S\tSPEED-UP\tEFFICIENCY\tDATA WAIT\tRUN\tSTATE")
	for _, r := range s.Runs {
		speed, up, efficiency, wait := "-", "-", "-", "-"
		if r.ExamplesPerSecond > 0 {
			speed, wait = fmt.Sprintf("%.4g", r.ExamplesPerSecond), fmt.Sprintf("%.0f %%", 100*r.DataWait)
		}
		if r.Speedup > 0 {
			up, efficiency = fmt.Sprintf("%.2f", r.Speedup), fmt.Sprintf("%.0f %%", 100*r.Efficiency)
		}
		fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Nodes, r.Ranks, speed, up, efficiency, wait, r.Run, r.State)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the same table later: submit scaling %s\n", s.Sweep)
	return err
}
