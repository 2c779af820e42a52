package main

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/internal/plural"
)

// leastOnTwoNodes is the goal: how many times as many inputs a second two nodes should take as one.
const leastOnTwoNodes = 1.85

// markdown returns the report as tables.
func (r nodeReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Two nodes

Training steps on one rank, and on two ranks of one core each in network namespaces, which a pair of
interfaces connects. tbf limits them to a speed; the link has no other delay than the kernel's.
Medians of %s, in which the contenders take turns; each round counts with its median step. The
numbers in brackets say how many times as many inputs a second two ranks take as one. The goal is
%.2f. PyTorch's gloo uses the same link.
%s, load average before: %s.%s

## The link

What gonbatch's transports make of it, from all-reduces of %s and %s:

| link | transport | alpha | bandwidth |
|---|---|--:|--:|
`, plural.Of(r.Rounds, "round"), leastOnTwoNodes, r.CPU, r.Load, busy(r.Load), size(linkTurns[0].bytes), size(linkTurns[len(linkTurns)-1].bytes))
	for _, l := range r.Links {
		fmt.Fprintf(&b, "| %d Gbit/s | %s | %s us | %.2f Gbit/s |\n", l.Gigabits, l.Name, micros(l.Alpha), l.Bandwidth*8/1000)
	}
	for _, n := range r.Networks {
		n.write(&b)
	}
	return b.String()
}

func (n nodeNetwork) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%d inputs for each rank, %d steps a round.\n\n| ms a step | one rank |", n.Title, n.Batch, n.Steps)
	for _, gigabits := range nodeGigabits {
		fmt.Fprintf(b, " two, %d Gbit/s |", gigabits)
	}
	fmt.Fprintf(b, "\n|---|--:|%s\n", strings.Repeat("--:|", len(nodeGigabits)))
	for _, row := range n.Rows {
		fmt.Fprintf(b, "| %s | %.1f |", strings.TrimSpace(row.Name+" "+row.Version), row.One)
		for i := range row.Two {
			fmt.Fprintf(b, " %.1f (%.2f x) |", row.Two[i], row.times(i))
		}
		b.WriteString("\n")
	}
	n.writeGoal(b)
	n.writeBuckets(b)
}

// times is how many times as many inputs a second two ranks take as one, on the i-th link.
func (r nodeRow) times(i int) float64 { return 2 * r.One / r.Two[i] }

// writeGoal says whether gonbatch's faster transport reaches the goal on each link, with what is on
// by itself there, which is overlap over TCP only, and with zero1.
func (n nodeNetwork) writeGoal(b *strings.Builder) {
	n.writeBest(b, "gonbatch's defaults", func(r nodeRow) bool { return !r.Zero1 && r.Overlaps == (r.Transport == overTCP) })
	if slices.ContainsFunc(n.Rows, func(r nodeRow) bool { return r.Zero1 }) {
		n.writeBest(b, "zero1", func(r nodeRow) bool { return r.Zero1 })
	}
}

// writeBest writes the best of gonbatch's rows with a property on each link.
func (n nodeNetwork) writeBest(b *strings.Builder, with string, has func(nodeRow) bool) {
	fmt.Fprintf(b, "\nWith %s:", with)
	for i, gigabits := range nodeGigabits {
		best := 0.0
		for _, row := range n.Rows {
			if row.Transport != "" && has(row) {
				best = max(best, row.times(i))
			}
		}
		reached := "missed"
		if best >= leastOnTwoNodes {
			reached = "reached"
		}
		separator := ","
		if i == 0 {
			separator = ""
		}
		fmt.Fprintf(b, "%s %.2f times at %d Gbit/s (%s)", separator, best, gigabits, reached)
	}
	b.WriteString(".\n")
}

// writeBuckets writes the sweep.
func (n nodeNetwork) writeBuckets(b *strings.Builder) {
	b.WriteString("\n| ms a step over TCP, with overlap, in buckets of |")
	for _, bytes := range bucketSizes {
		fmt.Fprintf(b, " %s |", size(bytes))
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("--:|", len(bucketSizes)))
	for _, row := range n.Buckets {
		fmt.Fprintf(b, "| %d Gbit/s |", row.Gigabits)
		for _, millis := range row.Millis {
			text := fmt.Sprintf("%.1f", millis)
			if millis == slices.Min(row.Millis) {
				text = "**" + text + "**"
			}
			fmt.Fprintf(b, " %s |", text)
		}
		b.WriteString("\n")
	}
}
