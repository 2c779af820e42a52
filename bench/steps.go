package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// worlds are the numbers of ranks to measure.
var worlds = []int{1, 2}

// stepReport is what measureSteps finds.
type stepReport struct {
	CPU    string    `json:"cpu"`
	Load   string    `json:"load_average_before"`
	Batch  int       `json:"batch_per_rank"`
	Steps  int       `json:"steps"`
	Rounds int       `json:"rounds"`
	Rows   []stepRow `json:"rows"`
}

// stepRow is one contender on one number of ranks. The first row of each number of ranks is
// gonbatch.
type stepRow struct {
	Name            string    `json:"name"`
	Version         string    `json:"version,omitempty"`
	Ranks           int       `json:"ranks"`
	ImagesPerSecond float64   `json:"images_per_second"`
	MillisPerStep   float64   `json:"ms_per_step"`
	All             []float64 `json:"all_images_per_second"`
}

// measureSteps lets all contenders take turns, on one core a rank.
func measureSteps(ctx context.Context, opts options, out io.Writer) (stepReport, error) {
	report := stepReport{CPU: cpuModel(), Load: loadAverage(), Batch: opts.batch, Steps: opts.steps, Rounds: opts.rounds}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if need := slices.Max(worlds); len(available) < need {
		return report, fmt.Errorf("%d cores to run on, and %d ranks with a core each: use a machine with more", len(available), need)
	}
	all, err := contenders(ctx)
	if err != nil {
		return report, err
	}
	var rows []*stepRow
	found := map[*stepRow][]measurement{}
	for round := range opts.rounds {
		i := 0
		for _, ranks := range worlds {
			for _, c := range all {
				if round == 0 {
					rows = append(rows, &stepRow{Name: c.name, Ranks: ranks})
				}
				m, err := c.measure(ctx, available[:ranks], opts)
				if err != nil {
					return report, err
				}
				fmt.Fprintf(out, "round %d: %-20s %d ranks %8.0f images/s %7.2f ms\n", round+1, c.name, ranks, m.ImagesPerSecond, m.MillisPerStep)
				found[rows[i]] = append(found[rows[i]], m)
				i++
			}
		}
	}
	for _, row := range rows {
		row.fill(found[row])
		report.Rows = append(report.Rows, *row)
	}
	return report, nil
}

func (r *stepRow) fill(all []measurement) {
	r.Version = all[0].Version
	r.ImagesPerSecond = median(all, func(m measurement) float64 { return m.ImagesPerSecond })
	r.MillisPerStep = median(all, func(m measurement) float64 { return m.MillisPerStep })
	for _, m := range all {
		r.All = append(r.All, m.ImagesPerSecond)
	}
}

// markdown is the report as a table. The ratio says how many times as fast gonbatch is.
func (r stepReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The training step\n\n")
	fmt.Fprintf(&b, "A CNN with 421,642 parameters on 28x28 images, Adam, %d images and one core per rank. Median of %d\nrounds of %d steps. The contenders take turns.\n", r.Batch, r.Rounds, r.Steps)
	fmt.Fprintf(&b, "%s, load average before: %s.\n\n", r.CPU, r.Load)
	fmt.Fprintf(&b, "| ranks | | images/s | ms a step | gonbatch is |\n|--:|---|--:|--:|--:|\n")
	ours := map[int]float64{}
	for _, row := range r.Rows {
		if _, ok := ours[row.Ranks]; !ok {
			ours[row.Ranks] = row.ImagesPerSecond
		}
		name := strings.TrimSpace(row.Name + " " + row.Version)
		fmt.Fprintf(&b, "| %d | %s | %.0f | %.2f | %.2f x |\n", row.Ranks, name, row.ImagesPerSecond, row.MillisPerStep, ours[row.Ranks]/row.ImagesPerSecond)
	}
	return b.String()
}

// median of a value over measurements; of an even number, the upper one of the middle two.
func median[M any, V cmp.Ordered](all []M, value func(M) V) V {
	values := make([]V, len(all))
	for i, m := range all {
		values[i] = value(m)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
