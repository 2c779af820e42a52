package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"gonbatch/internal/plural"
)

// worlds are the numbers of ranks to measure.
var worlds = []int{1, 2}

// stepReport is the result of measureSteps.
type stepReport struct {
	CPU      string        `json:"cpu"`
	Load     string        `json:"load_average_before"`
	Rounds   int           `json:"rounds"`
	Networks []stepNetwork `json:"networks"`
}

// stepNetwork has the contenders on one network.
type stepNetwork struct {
	Name  string    `json:"name"`
	Title string    `json:"title"`
	Batch int       `json:"batch_per_rank"`
	Steps int       `json:"steps"`
	Rows  []stepRow `json:"rows"`
}

// stepRow is one contender on one number of ranks. The first row for each number of ranks is
// gonbatch's.
type stepRow struct {
	Name            string    `json:"name"`
	Version         string    `json:"version,omitempty"`
	Ranks           int       `json:"ranks"`
	ImagesPerSecond float64   `json:"images_per_second"`
	MillisPerStep   float64   `json:"ms_per_step"`
	CPUPerStep      float64   `json:"cpu_ms_per_step"`
	FirstStep       float64   `json:"first_step_seconds"`
	PeakMB          float64   `json:"peak_mb"`
	All             []float64 `json:"all_images_per_second"`
}

// measureSteps makes all contenders take turns, with one core for each rank.
func measureSteps(ctx context.Context, opts options, out io.Writer) (stepReport, error) {
	report := stepReport{CPU: cpuModel(), Load: loadAverage(), Rounds: opts.rounds}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if need := slices.Max(worlds); len(available) < need {
		return report, fmt.Errorf("%s available, and %s that need one each: use a machine with more", plural.Of(len(available), "core"), plural.Of(need, "rank"))
	}
	for _, n := range networks {
		if opts.network != "" && opts.network != n.name {
			continue
		}
		found, err := n.measure(ctx, available, n.of(opts), out)
		if err != nil {
			return report, err
		}
		report.Networks = append(report.Networks, found)
	}
	return report, nil
}

// measure makes the contenders on a network take turns.
func (n network) measure(ctx context.Context, cores []int, opts options, out io.Writer) (stepNetwork, error) {
	found := stepNetwork{Name: n.name, Title: n.title, Batch: opts.batch, Steps: opts.steps}
	all, err := contenders(ctx, n)
	if err != nil {
		return found, err
	}
	rounds := make([][]measurement, len(worlds)*len(all))
	for round := range opts.rounds {
		for i, ranks := range worlds {
			for j, c := range all {
				m, err := c.measure(ctx, cores[:ranks], opts)
				if err != nil {
					return found, err
				}
				fmt.Fprintf(out, "%s, round %d: %-27s %d ranks %8.1f images/s %8.2f ms\n", n.name, round+1, c.name, ranks, m.ImagesPerSecond, m.MillisPerStep)
				rounds[i*len(all)+j] = append(rounds[i*len(all)+j], m)
			}
		}
	}
	for i, measured := range rounds {
		row := stepRow{Name: all[i%len(all)].name, Ranks: worlds[i/len(all)]}
		row.fill(measured)
		found.Rows = append(found.Rows, row)
	}
	return found, nil
}

func (r *stepRow) fill(all []measurement) {
	r.Version = all[0].Version
	r.ImagesPerSecond = median(all, func(m measurement) float64 { return m.ImagesPerSecond })
	r.MillisPerStep = median(all, func(m measurement) float64 { return m.MillisPerStep })
	r.CPUPerStep = median(all, func(m measurement) float64 { return m.CPUPerStep })
	r.FirstStep = median(all, func(m measurement) float64 { return m.FirstStep })
	r.PeakMB = median(all, func(m measurement) float64 { return m.PeakMB })
	for _, m := range all {
		r.All = append(r.All, m.ImagesPerSecond)
	}
}

// markdown returns the report as tables. The ratio says how many times as fast gonbatch is.
func (r stepReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# The training step

One core per rank. Medians of %d rounds, in which the contenders take turns; each round counts with its
median step. PyTorch's best settings are channels last, the fused optimizer, and a malloc that keeps
freed memory. Processor time and memory are the first rank's; a rank that waits for another may use
its processor.
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
	fmt.Fprintf(b, "| ranks | | inputs/s | ms a step | processor ms | first step s | peak MB | gonbatch is |\n|--:|---|--:|--:|--:|--:|--:|--:|\n")
	ours := map[int]float64{}
	for _, row := range n.Rows {
		if _, ok := ours[row.Ranks]; !ok {
			ours[row.Ranks] = row.ImagesPerSecond
		}
		name := strings.TrimSpace(row.Name + " " + row.Version)
		fmt.Fprintf(b, "| %d | %s | %.4g | %.2f | %.2f | %.1f | %.0f | %.2f x |\n", row.Ranks, name, row.ImagesPerSecond, row.MillisPerStep, row.CPUPerStep, row.FirstStep, row.PeakMB, ours[row.Ranks]/row.ImagesPerSecond)
	}
}

// median returns the median of a value over measurements: of an even number, the upper one of the
// two in the middle.
func median[M any, V cmp.Ordered](all []M, value func(M) V) V {
	values := make([]V, len(all))
	for i, m := range all {
		values[i] = value(m)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
