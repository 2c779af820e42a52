package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/plural"
)

// trainerReport is the result of measureTrainers.
type trainerReport struct {
	CPU         string       `json:"cpu"`
	Load        string       `json:"load_average_before"`
	Batch       int          `json:"batch_per_rank"`
	Steps       int          `json:"steps"`
	Rounds      int          `json:"rounds"`
	Loops       []loopRow    `json:"loops"`
	Checkpoints []costOfSave `json:"checkpoints"`
}

// loopRow is a trainer with one model on a number of ranks: its speed, or its cost compared with a
// bare loop.
type loopRow struct {
	Name    string        `json:"name"`
	Version string        `json:"version,omitempty"`
	Model   string        `json:"model"`
	Ranks   int           `json:"ranks"`
	Median  measurement   `json:"median"`
	Rounds  []measurement `json:"rounds"`
}

// costOfSave is how much a checkpoint delays a training run.
type costOfSave struct {
	Model  string        `json:"model"`
	Median measurement   `json:"median"`
	Rounds []measurement `json:"rounds"`
}

// trainerCase is a loop with a model on a number of ranks, for a multiple of the benchmark's steps.
type trainerCase struct {
	loop, model string
	ranks       int
	times       int
}

// A step of linear is so short that the cost of the loop shows.
var trainerCases = []trainerCase{{"trainer", "cnn", 1, 1}, {"trainer", "cnn", 2, 1}, {"both", "linear", 1, 20}, {"both", "linear", 2, 20}}

// measureTrainers makes the loops take turns, with one core for each rank.
func measureTrainers(ctx context.Context, opts options, out io.Writer) (trainerReport, error) {
	report := trainerReport{CPU: cpuModel(), Load: loadAverage(), Batch: opts.batch, Steps: opts.steps, Rounds: opts.rounds}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if len(available) < 2 {
		return report, fmt.Errorf("%d core is available, but 2 ranks need a core each: use a machine with more", len(available))
	}
	program, err := build(ctx, "./bench/train", "bench-train")
	if err != nil {
		return report, err
	}
	ours := contender{name: "gonbatch, package trainer", start: mpi(program)}
	theirs := contender{name: "PyTorch Lightning", start: torchrun(filepath.Join(".cache", "bench-venv", "bin", "python"), "bench/peers/lightning_loop.py")}
	both := []contender{ours, theirs}
	for round := range opts.rounds {
		if err := report.loops(ctx, round, both, available, opts, out); err != nil {
			return report, err
		}
		if err := report.checkpoints(ctx, ours, available, opts, out); err != nil {
			return report, err
		}
		report.Rounds = round + 1
		report.summarize()
		// This takes long, so write the results so far in case it is interrupted.
		if err := write(opts.out, "trainer", report, report.markdown(), io.Discard); err != nil {
			return report, err
		}
	}
	return report, nil
}

func (r *trainerReport) loops(ctx context.Context, round int, both []contender, cores []int, opts options, out io.Writer) error {
	i := 0
	for _, c := range trainerCases {
		for _, own := range both {
			scaled := opts
			scaled.steps *= c.times
			m, err := own.with("--loop="+c.loop, "--model="+c.model).measure(ctx, cores[:c.ranks], scaled)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "round %d: %-26s %-6s %d ranks %8.0f images/s %7.3f ms, over the bare step %6.3f ms\n", round+1, own.name, c.model, c.ranks,
				m.ImagesPerSecond, m.MillisPerStep, m.Over)
			if round == 0 {
				r.Loops = append(r.Loops, loopRow{Name: own.name, Version: m.Version, Model: c.model, Ranks: c.ranks})
			}
			r.Loops[i].Rounds = append(r.Loops[i].Rounds, m)
			i++
		}
	}
	return nil
}

// checkpoints measures the cost of checkpoints on one core, which training and writing share.
func (r *trainerReport) checkpoints(ctx context.Context, ours contender, cores []int, opts options, out io.Writer) error {
	dir, err := filepath.Abs(".cache") // On disk, like those of a training run, not in memory.
	if err != nil {
		return err
	}
	for i, c := range []struct {
		model               string
		every, batch, steps int
	}{{"cnn", 50, opts.batch, 200}, {"dense", 15, 8, 60}} {
		scaled := opts
		scaled.batch, scaled.steps = c.batch, c.steps
		m, err := ours.with("--model="+c.model, "--dir="+dir, fmt.Sprintf("--checkpoint-every=%d", c.every)).measure(ctx, cores[:1], scaled)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "checkpoint of %-6s: stands still for %.1f ms, %.1f ms more in all\n", c.model, m.Stall, m.Extra)
		if len(r.Checkpoints) == i {
			r.Checkpoints = append(r.Checkpoints, costOfSave{Model: c.model})
		}
		r.Checkpoints[i].Rounds = append(r.Checkpoints[i].Rounds, m)
	}
	return nil
}

// summarize takes medians over the rounds.
func (r *trainerReport) summarize() {
	for i := range r.Loops {
		r.Loops[i].Median = medians(r.Loops[i].Rounds)
	}
	for i := range r.Checkpoints {
		r.Checkpoints[i].Median = medians(r.Checkpoints[i].Rounds)
	}
}

func medians(all []measurement) measurement {
	all = slices.Clone(all)
	return measurement{
		Version:         all[0].Version,
		ImagesPerSecond: median(all, func(m measurement) float64 { return m.ImagesPerSecond }),
		MillisPerStep:   median(all, func(m measurement) float64 { return m.MillisPerStep }),
		CPUPerStep:      median(all, func(m measurement) float64 { return m.CPUPerStep }),
		Over:            median(all, func(m measurement) float64 { return m.Over }),
		MeanOver:        median(all, func(m measurement) float64 { return m.MeanOver }),
		Stall:           median(all, func(m measurement) float64 { return m.Stall }),
		Extra:           median(all, func(m measurement) float64 { return m.Extra }),
	}
}

// markdown returns the report as tables.
func (r trainerReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The trainer\n\n")
	fmt.Fprintf(&b, "Training loops over 10,000 shuffled random images in memory: %d images per rank and step, Adam, one\n"+
		"core per rank, the loss logged every 50 steps. Median of %s of %s. The contenders take\n"+
		"turns. %s, load average before: %s.%s\n\n", r.Batch, plural.Of(r.Rounds, "round"), plural.Of(r.Steps, "step"), r.CPU, r.Load, busy(r.Load))
	fmt.Fprintf(&b, "A CNN with 421,642 parameters:\n\n| ranks | | images/s | ms a step | CPU ms a step | gonbatch is |\n|--:|---|--:|--:|--:|--:|\n")
	for i, row := range r.Loops {
		if row.Model == "cnn" {
			m, ours := row.Median, r.Loops[i/2*2].Median.ImagesPerSecond
			fmt.Fprintf(&b, "| %d | %s | %.0f | %.2f | %.2f | %.2f x |\n", row.Ranks, row.fullName(), m.ImagesPerSecond, m.MillisPerStep, m.CPUPerStep, ours/m.ImagesPerSecond)
		}
	}
	fmt.Fprintf(&b, "\nThe cost of a trainer compared with a hand-written loop, with the same loader and a linear model. The\n"+
		"two take turns step by step in one process, so that other programs slow down both. The table has the\n"+
		"medians of the differences, and their share of the CNN's step above:\n\n| ranks | | us a step | of the CNN's step |\n|--:|---|--:|--:|\n")
	for i, row := range r.Loops {
		if row.Model == "linear" {
			over, step := row.Median.Over, r.Loops[i-len(r.Loops)/2].Median.MillisPerStep
			fmt.Fprintf(&b, "| %d | %s | %.0f | %.2f %% |\n", row.Ranks, row.fullName(), 1000*over, 100*over/step)
		}
	}
	fmt.Fprintf(&b, "\nThe cost of a checkpoint, except the first, which allocates its memory. The files are written on the\n"+
		"same core. The CNN with Adam's state has 5 MB, the other model 500 MB:\n\n| model | ms a step | pause, ms | total delay until it is written, ms |\n|---|--:|--:|--:|\n")
	for _, row := range r.Checkpoints {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f |\n", row.Model, row.Median.MillisPerStep, row.Median.Stall, row.Median.Extra)
	}
	return b.String()
}

// busy returns a warning about figures that were measured on a busy machine.
func busy(load string) string {
	const quiet = 2.5
	if x, err := strconv.ParseFloat(load, 64); err != nil || x < quiet {
		return ""
	}
	return " The machine was\nbusy with other work: the speeds are too low and vary by a factor of two; the differences within one process and the CPU times hold better."
}

func (r loopRow) fullName() string { return strings.TrimSpace(r.Name + " " + r.Version) }
