package report

import (
	"fmt"
	"io"
)

// Result is what a run has produced, as %result shows it.
type Result struct {
	Job string `json:"job,omitempty"`
	Run string `json:"run"`
	// State is one of those of Run, and Message is it for people.
	State     string `json:"state"`
	Message   string `json:"message"`
	Directory string `json:"directory"`
	// Step is the last training step with metrics.
	Step int64 `json:"step"`
	// Metrics has the newest values by name: numbers, or strings for NaN and the infinities.
	Metrics map[string]any `json:"metrics"`
	// Losses has pairs of a step and a value.
	Losses map[string][][2]float64 `json:"losses"`
	// Checkpoints and Images are absolute paths.
	Checkpoints []string `json:"checkpoints"`
	Images      []string `json:"images"`
	// Measures are the newest values for people.
	Measures []string `json:"-"`
	// Title is the job's name and state for people.
	Title string `json:"-"`
}

// Text writes the result in lines.
func (r Result) Text(w io.Writer) error {
	lines := append([]string{r.Title}, r.Measures...)
	for _, path := range r.Checkpoints {
		lines = append(lines, "checkpoint: "+path)
	}
	for _, path := range r.Images {
		lines = append(lines, "image: "+path)
	}
	for _, line := range append(lines, "run directory: "+r.Directory) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
