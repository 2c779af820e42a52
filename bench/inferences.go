package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"gonbatch/internal/plural"
)

// inferenceReport is what measureInferences finds.
type inferenceReport struct {
	CPU      string             `json:"cpu"`
	Load     string             `json:"load_average_before"`
	Rounds   int                `json:"rounds"`
	Versions []string           `json:"versions"` // Of gonbatch and of PyTorch.
	Networks []inferenceNetwork `json:"networks"`
}

// inferenceNetwork has the rows of a network, one for each batch size.
type inferenceNetwork struct {
	Title string         `json:"title"`
	Rows  []inferenceRow `json:"rows"`
}

// inferenceRow has the median times of each round.
type inferenceRow struct {
	Batch  int             `json:"batch"`
	Ours   []inferenceTime `json:"gonbatch"`
	Theirs []inferenceTime `json:"pytorch"`
}

// inferenceTime is the time of a batch, and its processor time.
type inferenceTime struct {
	Millis float64 `json:"ms"`
	CPU    float64 `json:"cpu_ms"`
}

// inferenceSizes are the batch sizes.
const inferenceSizes = "1,4,16,64,256"

// measureInferences lets gonbatch and PyTorch take turns on one core.
func measureInferences(ctx context.Context, opts options, out io.Writer) (inferenceReport, error) {
	report := inferenceReport{CPU: cpuModel(), Load: loadAverage(), Rounds: opts.rounds}
	available, err := cores()
	if err != nil {
		return report, err
	}
	program, err := build(ctx, "./bench/infer", "bench-infer")
	if err != nil {
		return report, err
	}
	both := []contender{
		{name: "gonbatch", start: onCores(program)},
		contender{name: "PyTorch", start: onCores(filepath.Join(".cache", "bench-venv", "bin", "python"), "bench/peers/inference.py")}.environ(keepMemory...),
	}
	for _, n := range networks {
		if !n.images || opts.network != "" && opts.network != n.name {
			continue
		}
		found := inferenceNetwork{Title: n.title}
		for round := range opts.rounds {
			for i, c := range both {
				line, err := c.infers(ctx, available[:1], n.name)
				if err != nil {
					return report, err
				}
				fmt.Fprintf(out, "%s, round %d: %-10s %v\n", n.name, round+1, c.name, line.Sizes)
				found.add(i == 0, line)
				report.Versions = append(report.Versions[:min(i, len(report.Versions))], line.Version)
			}
		}
		report.Networks = append(report.Networks, found)
	}
	return report, nil
}

// inferenceLine is what bench/infer prints.
type inferenceLine struct {
	Version string `json:"version"`
	Sizes   []struct {
		Batch int `json:"batch"`
		inferenceTime
	} `json:"sizes"`
}

// infers runs a contender once.
func (c contender) infers(ctx context.Context, cores []int, network string) (line inferenceLine, err error) {
	out, err := c.run(ctx, cores, "--model="+network, "--sizes="+inferenceSizes)
	if err != nil {
		return line, err
	}
	switch err := json.Unmarshal([]byte(lastLine(out)), &line); {
	case err != nil:
		return line, fmt.Errorf("%s: its last line is not a measurement: %w\n%s", c.name, err, out)
	case len(line.Sizes) == 0:
		return line, fmt.Errorf("%s: its last line has no sizes\n%s", c.name, out)
	}
	return line, nil
}

// add adds the times of a round.
func (n *inferenceNetwork) add(ours bool, line inferenceLine) {
	for i, s := range line.Sizes {
		if i == len(n.Rows) {
			n.Rows = append(n.Rows, inferenceRow{Batch: s.Batch})
		}
		if ours {
			n.Rows[i].Ours = append(n.Rows[i].Ours, s.inferenceTime)
		} else {
			n.Rows[i].Theirs = append(n.Rows[i].Theirs, s.inferenceTime)
		}
	}
}

// markdown is the report as tables.
func (r inferenceReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Inference\n\nThe time from a batch of images in memory to their logits in memory, on one core: gonbatch %s, and\nPyTorch %s with eval, inference_mode, channels_last, and a malloc that keeps freed memory, in huge pages.\nEach figure is the median of %s, in which the contenders take turns; each round counts with its\nmedian batch, and with the mean of the processor time, which other work on the machine changes less.\n%s, load average before: %s.%s\n",
		r.Versions[0], r.Versions[1], plural.Of(r.Rounds, "round"), r.CPU, r.Load, busy(r.Load))
	for _, n := range r.Networks {
		fmt.Fprintf(&b, "\n## %s\n\n| batch | gonbatch, ms | images/s | PyTorch, ms | images/s | gonbatch is | CPU ms | PyTorch, CPU ms | gonbatch is |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", n.Title)
		for _, row := range n.Rows {
			wall, cpu := func(t inferenceTime) float64 { return t.Millis }, func(t inferenceTime) float64 { return t.CPU }
			ours, theirs, ourCPU, theirCPU := median(row.Ours, wall), median(row.Theirs, wall), median(row.Ours, cpu), median(row.Theirs, cpu)
			fmt.Fprintf(&b, "| %d | %.2f | %.0f | %.2f | %.0f | %.2f x | %.2f | %.2f | %.2f x |\n",
				row.Batch, ours, 1000*float64(row.Batch)/ours, theirs, 1000*float64(row.Batch)/theirs, theirs/ours, ourCPU, theirCPU, theirCPU/ourCPU)
		}
	}
	return b.String()
}
