package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Top are the runs that have not ended, the newest last.
type Top struct {
	Runs []TopRun `json:"runs"`
}

// TopRun is a run that has not ended.
type TopRun struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Job       string `json:"job,omitempty"`
	State     string `json:"state"`
	Message   string `json:"message"`
	// Step is the newest step with metrics, Metric the name of a loss, and Values are its newest
	// values, the last of which is the newest.
	Step   int64     `json:"step,omitempty"`
	Metric string    `json:"metric,omitempty"`
	Values []float64 `json:"values,omitempty"`
}

// Text writes a table.
func (t Top) Text(w io.Writer) error {
	if len(t.Runs) == 0 {
		_, err := fmt.Fprintln(w, "no run is active")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "JOB\tRUN\tSTEP\tLOSS\tCURVE\tSTATE")
	for _, r := range t.Runs {
		step, loss := "-", "-"
		if n := len(r.Values); n > 0 {
			step, loss = fmt.Sprint(r.Step), fmt.Sprintf("%s %.4g", r.Metric, r.Values[n-1])
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", dash(r.Job), r.Run, step, loss, dash(sparkline(r.Values)), r.Message)
	}
	return table.Flush()
}

// sparkline draws values as a line of text, between the smallest and the largest of them.
func sparkline(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	var line strings.Builder
	for _, v := range values {
		at := 0
		if high > low {
			at = int((v - low) / (high - low) * float64(len(blocks)-1))
		}
		line.WriteRune(blocks[at])
	}
	return line.String()
}
