package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonbatch/internal/plural"
)

// markdown returns the report as tables.
func (r scalingReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Scaling

docs/scaling.md explains the model. %s, load average before: %s.%s

## This machine

From [allreduce.md](allreduce.md):

| link | alpha | bandwidth |
|---|--:|--:|
`, r.CPU, r.Load, busy(r.Load))
	for _, l := range []link{r.Here, r.Ring} {
		fmt.Fprintf(&b, "| %s | %.2f us | %.2f GB/s |\n", l.Name, l.Alpha, l.Bandwidth/1000)
	}
	r.writeErrors(&b)
	if r.Nodes != nil {
		r.Nodes.writeErrors(&b)
	}
	fmt.Fprintf(&b, `
## Carried to %d ranks

Extrapolated: each rank computes as one core of this machine does, and has a link of its own. Over
TCP, gradients travel while others are computed; over MPI, with one core for each rank, they don't.
In brackets: the efficiency, which is the time of a step on one rank divided by that on all.
`, largestWorld)
	for _, n := range r.Networks {
		r.writeForecast(&b, n)
	}
	return b.String()
}

// writeErrors compares the model with steps on one machine.
func (r scalingReport) writeErrors(b *strings.Builder) {
	fmt.Fprintf(b, `
## Model and measurement

Training steps over Open MPI, one core per rank: medians of %s. Compute is the step of one rank or,
in the last two columns, of as many ranks on their own, which share the machine's memory.

| network | ranks | measured | model | error | model, compute as on their own | error |
|---|--:|--:|--:|--:|--:|--:|
`, plural.Of(r.Rounds, "round"))
	for _, n := range r.Networks {
		for i, measured := range n.Millis[1:] {
			alone, sharing := r.Here.step(i+2, n.Millis[0], n.gradients()), r.Here.step(i+2, n.Apart[i+1], n.gradients())
			fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s |\n", n.Name, i+2, inMillis(measured), inMillis(alone), off(alone, measured), inMillis(sharing), off(sharing, measured))
		}
	}
}

// writeErrors compares the model with steps on two nodes. The link is that of the all-reduces
// there.
func (r nodeReport) writeErrors(b *strings.Builder) {
	fmt.Fprintf(b, "\nTraining steps on two nodes ([nodes.md](nodes.md)), with alpha and bandwidth of their links:\n\n")
	fmt.Fprintf(b, "| network | link | measured | model | error | with overlap, measured | model | error |\n|---|---|--:|--:|--:|--:|--:|--:|\n")
	for _, n := range r.Networks {
		g := networkNamed(n.Name).gradients
		for _, l := range r.Links {
			fmt.Fprintf(b, "| %s | %d Gbit/s, %s |", n.Name, l.Gigabits, l.Name)
			for _, overlaps := range []bool{false, true} {
				measured, compute := n.of(l, overlaps)
				model := l.step(2, compute, g)
				if overlaps {
					model = l.overlapped(2, compute, g)
				}
				fmt.Fprintf(b, " %s | %s | %s |", inMillis(measured), inMillis(model), off(model, measured))
			}
			b.WriteString("\n")
		}
	}
}

// of returns gonbatch's time of a step over a link, and that on one rank.
func (n nodeNetwork) of(l nodeLink, overlaps bool) (two, one float64) {
	for _, row := range n.Rows {
		if i := slices.Index(nodeGigabits, l.Gigabits); row.Transport == l.Name && row.Overlaps == overlaps && i >= 0 && i < len(row.Two) {
			return row.Two[i], row.One
		}
	}
	return math.NaN(), math.NaN()
}

// off is the error of a forecast.
func off(model, measured float64) string {
	return fmt.Sprintf("%+.0f %%", 100*(model-measured)/measured)
}

func inMillis(value float64) string { return micros(value) + " ms" }

func (r scalingReport) writeForecast(b *strings.Builder, n scalingNetwork) {
	fmt.Fprintf(b, "\n%s: %d parameters, %d inputs for each rank, %s ms on one rank.\n\n| link |", n.Name, n.Parameters, n.Batch, micros(n.Millis[0]))
	shown := []int{2, 8, 64, 256, 1024}
	for _, ranks := range shown {
		fmt.Fprintf(b, " %d ranks |", ranks)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("--:|", len(shown)))
	for _, l := range r.Assumed {
		fmt.Fprintf(b, "| %s |", l.Name)
		for _, ranks := range shown {
			took := l.apart(ranks, n.Millis[0], n.gradients())
			fmt.Fprintf(b, " %s (%.0f %%) |", inMillis(took), 100*n.Millis[0]/took)
		}
		b.WriteString("\n")
	}
}
