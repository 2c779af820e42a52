package magic

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

// newCard is what the notebook shows of a job, as HTML and as text.
func newCard(s state) map[string]any {
	return map[string]any{"text/plain": textCard(s), "text/html": htmlCard(s)}
}

func (s state) title() string { return fmt.Sprintf("job %s: %s", s.Job.ID, s.State) }

// measures are the last values, in the order of their names.
func (s state) measures() string {
	var parts []string
	if s.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", s.Step))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		parts = append(parts, fmt.Sprintf("%s %.4g", name, s.Metrics[name]))
	}
	return strings.Join(parts, ", ")
}

func textCard(s state) string {
	lines := []string{s.title()}
	if measures := s.measures(); measures != "" {
		lines = append(lines, measures)
	}
	if s.Reason != "" {
		lines = append(lines, s.Reason)
	}
	for _, line := range s.Log {
		lines = append(lines, "| "+line)
	}
	return strings.Join(append(lines, s.Job.Dir), "\n")
}

func htmlCard(s state) string {
	color := "#888"
	switch {
	case s.succeeded():
		color = "#2a7"
	case s.ended():
		color = "#c33"
	case strings.HasPrefix(s.State, "running"):
		color = "#27c"
	}
	var text strings.Builder
	fmt.Fprintf(&text, `<div style="border-left:4px solid %s;padding:2px 10px"><b>%s</b>`, color, html.EscapeString(s.title()))
	if measures := s.measures(); measures != "" {
		text.WriteString("<div>" + html.EscapeString(measures) + "</div>")
	}
	text.WriteString(curve(s.Losses, color))
	if s.Reason != "" {
		text.WriteString("<pre>" + html.EscapeString(s.Reason) + "</pre>")
	}
	if len(s.Log) > 0 {
		text.WriteString(`<pre style="opacity:.8;font-size:85%">` + html.EscapeString(strings.Join(s.Log, "\n")) + "</pre>")
	}
	fmt.Fprintf(&text, `<div style="opacity:.6;font-size:85%%">%s</div></div>`, html.EscapeString(s.Job.Dir))
	return text.String()
}

// The size of the loss curve, and how many points it has at most.
const curveWidth, curveHeight, curvePoints = 320, 60, 160

// curve draws values over time as SVG.
func curve(values []float64, color string) string {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(values) < 2 {
		return ""
	}
	low, high := slices.Min(values), slices.Max(values)
	if high == low {
		high++
	}
	count := min(len(values), curvePoints)
	var points strings.Builder
	for i := range count {
		v := values[i*(len(values)-1)/(count-1)]
		x, y := float64(i)/float64(count-1)*curveWidth, (high-v)/(high-low)*curveHeight
		fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
	}
	return fmt.Sprintf(`<svg width="%d" height="%d" viewBox="0 -2 %d %d"><polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/></svg>`,
		curveWidth, curveHeight+4, curveWidth, curveHeight+4, color, strings.TrimSpace(points.String()))
}
