package magic

import (
	"fmt"
	"strings"
)

// newCard returns what the notebook shows about a job, as HTML and as text.
func newCard(s state) map[string]any {
	return map[string]any{"text/plain": textCard(s), "text/html": htmlCard(s)}
}

func (s state) title() string { return fmt.Sprintf("job %s: %s", s.Job.ID, s.Run.Message) }

// barWidth is the width of the progress bar in text.
const barWidth = 30

func textCard(s state) string {
	lines := []string{s.title()}
	add := func(text string) {
		if text != "" {
			lines = append(lines, text)
		}
	}
	add(s.history())
	if s.Progress.Total > 0 && !s.ended() {
		full := int(s.Progress.part() * barWidth)
		add("[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "] " + s.caption())
	}
	add(strings.Join(s.measures(), ", "))
	add(s.Run.Failure)
	for _, line := range s.unsaidLog() {
		lines = append(lines, "| "+line)
	}
	if !s.ended() {
		add("%cancel " + s.Job.ID + " ends the job")
	}
	return strings.Join(append(lines, s.Job.Dir), "\n")
}

// history lists the job's past: cells that have finished, and restarts.
func (s state) history() string {
	var parts []string
	if cells := s.Run.Cells; cells.All > 1 {
		parts = append(parts, fmt.Sprintf("cells: %d of %d finished", cells.Finished, cells.All))
	}
	if s.Run.Restarts > 0 {
		parts = append(parts, fmt.Sprintf("restarts: %d", s.Run.Restarts))
	}
	return strings.Join(parts, ", ")
}

// caption is next to the progress bar: rank 0's progress line without the metrics in it, which
// are shown elsewhere.
func (s state) caption() string {
	var parts []string
	for _, part := range strings.Split(s.Progress.Text, "  ") {
		part = strings.TrimSpace(part)
		if strings.HasPrefix(part, "epoch ") || strings.HasPrefix(part, "step ") || strings.HasSuffix(part, " left") {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("step %d/%d", s.Progress.Done, s.Progress.Total)
	}
	return strings.Join(parts, "  ")
}
