package main

import (
	"fmt"
	"slices"
	"strings"
)

// The names of rows that others are computed from.
const (
	oursTogether = "gonbatch"
	oursApart    = "gonbatch, ranks on their own"
	oursZero1    = "gonbatch, zero1"
	torchFaster  = "PyTorch DDP, the faster"
)

// on is where a row was measured.
func (r stepRow) on() layout { return layout{r.Ranks, r.Cores} }

// row returns a contender's row on a layout.
func (n stepNetwork) row(name string, on layout) (stepRow, bool) {
	i := slices.IndexFunc(n.Rows, func(r stepRow) bool { return r.Name == name && r.on() == on })
	if i < 0 {
		return stepRow{}, false
	}
	return n.Rows[i], true
}

// addFaster adds a row to each layout: PyTorch with its best settings or its defaults, whichever is
// faster there. It is the one to compare with.
func (n *stepNetwork) addFaster() {
	for i := 0; i < len(n.Rows); i++ {
		defaults := n.Rows[i]
		best, ok := n.row(torchBest, defaults.on())
		if defaults.Name != torchDefaults || !ok {
			continue
		}
		faster := best
		if defaults.ImagesPerSecond > best.ImagesPerSecond {
			faster = defaults
		}
		faster.Name, faster.Of = torchFaster, faster.Name
		i++
		n.Rows = slices.Insert(n.Rows, i, faster)
	}
}

// markdown returns the report as tables. The ratio says how many times as fast gonbatch is.
func (r stepReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# The training step

Ranks of one core, and one of several. Medians of %d rounds, in which the contenders take turns; each round counts with its
median step. PyTorch's best settings are images in channels-last order, the fused optimizer, in DDP
gradients as views of its buckets and a static graph, and a malloc that keeps freed memory, in huge
pages; JAX has this malloc too. Not every network is faster with them, so a row repeats the faster
of best settings and defaults. Rows with zero1 are compared with gonbatch's. Processor time and
memory are the first rank's; a rank that waits for another may use its processor.
"First step" is the time from the start of the process to the end of its first step, with an empty
compile cache.
%s, load average before: %s.
`, r.Rounds, r.CPU, r.Load)
	for _, n := range r.Networks {
		n.write(&b)
	}
	return b.String()
}

func (n stepNetwork) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%d inputs for each rank, %d steps a round.\n\n", n.Title, n.Batch, n.Steps)
	fmt.Fprintf(b, "| ranks | cores each | | inputs/s | ms a step | processor ms | first step s | peak MB | gonbatch is |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|\n")
	type class struct {
		on    layout
		zero1 bool
	}
	ours := map[class]float64{}
	for _, row := range n.Rows {
		of := class{row.on(), row.Zero1}
		if _, ok := ours[of]; !ok {
			ours[of] = row.ImagesPerSecond
		}
		name := row.Name
		if _, setting, ok := strings.Cut(row.Of, ", "); ok {
			name += ": " + setting
		}
		name = strings.TrimSpace(name + " " + row.Version)
		fmt.Fprintf(b, "| %d | %d | %s | %.4g | %.2f | %.2f | %.1f | %.0f | %.2f x |\n", row.Ranks, row.Cores, name, row.ImagesPerSecond, row.MillisPerStep, row.CPUPerStep, row.FirstStep, row.PeakMB, ours[of]/row.ImagesPerSecond)
	}
	n.writeScaling(b)
}

// writeScaling writes how many times as many inputs a second several ranks of one core take as one.
func (n stepNetwork) writeScaling(b *strings.Builder) {
	one := layout{1, 1}
	for _, row := range n.Rows {
		if row.Name != oursTogether || row.Ranks == 1 || row.Cores > 1 {
			continue
		}
		var all []string
		for _, c := range []struct{ what, several, alone string }{
			{"gonbatch %.2f times", oursTogether, oursTogether},
			{"with zero1 %.2f times", oursZero1, oursTogether},
			{"its ranks on their own %.2f times", oursApart, oursTogether},
			{"PyTorch, the faster, %.2f times", torchFaster, torchFaster},
			{"JAX %.2f times", jaxGloo, jaxGloo},
		} {
			alone, ok := n.row(c.alone, one)
			several, also := n.row(c.several, row.on())
			if ok && also {
				all = append(all, fmt.Sprintf(c.what, several.ImagesPerSecond/alone.ImagesPerSecond))
			}
		}
		fmt.Fprintf(b, "\n%d ranks of one core take so many times as many inputs a second as one: %s.\n", row.Ranks, strings.Join(all, ", "))
	}
}
