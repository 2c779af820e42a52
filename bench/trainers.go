package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// trainerReport is what measureTrainers finds.
type trainerReport struct {
	CPU         string       `json:"cpu"`
	Load        string       `json:"load_average_before"`
	Batch       int          `json:"batch_per_rank"`
	Steps       int          `json:"steps"`
	Rounds      int          `json:"rounds"`
	Loops       []loopRow    `json:"loops"`
	Checkpoints []costOfSave `json:"checkpoints"`
}

// loopRow is a trainer with one model on a number of ranks.
type loopRow struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Model   string `json:"model"`
	Ranks   int    `json:"ranks"`
	// Alone is the trainer's own speed; InTurns is when a step of a bare loop comes after each of its steps.
	Alone         measurement   `json:"median_alone"`
	InTurns       measurement   `json:"median_in_turns"`
	RoundsAlone   []measurement `json:"rounds_alone"`
	RoundsInTurns []measurement `json:"rounds_in_turns"`
}

// costOfSave is what a training feels of a checkpoint.
type costOfSave struct {
	Model  string        `json:"model"`
	Median measurement   `json:"median"`
	Rounds []measurement `json:"rounds"`
}

// trainerCase is a model, on as many ranks, for as many steps of the benchmark's as it says.
type trainerCase struct {
	model string
	ranks int
	times int
}

var trainerCases = []trainerCase{{"cnn", 1, 1}, {"cnn", 2, 1}, {"linear", 1, 20}}

// measureTrainers lets the loops take turns, on one core a rank.
func measureTrainers(ctx context.Context, opts options, out io.Writer) (trainerReport, error) {
	report := trainerReport{CPU: cpuModel(), Load: loadAverage(), Batch: opts.batch, Steps: opts.steps, Rounds: opts.rounds}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if len(available) < 2 {
		return report, fmt.Errorf("%d core to run on, and 2 ranks with a core each: use a machine with more", len(available))
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
	}
	report.summarize()
	return report, nil
}

func (r *trainerReport) loops(ctx context.Context, round int, both []contender, cores []int, opts options, out io.Writer) error {
	i := 0
	for _, c := range trainerCases {
		for _, own := range both {
			scaled := opts
			scaled.steps *= c.times
			alone, err := own.with("--loop=trainer", "--model="+c.model).measure(ctx, cores[:c.ranks], scaled)
			if err != nil {
				return err
			}
			inTurns, err := own.with("--loop=both", "--model="+c.model).measure(ctx, cores[:c.ranks], scaled)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "round %d: %-26s %-6s %d ranks %8.0f images/s %7.3f ms, over the bare step %7.3f ms\n", round+1, own.name, c.model, c.ranks,
				alone.ImagesPerSecond, alone.MillisPerStep, inTurns.Over)
			if round == 0 {
				r.Loops = append(r.Loops, loopRow{Name: own.name, Version: alone.Version, Model: c.model, Ranks: c.ranks})
			}
			r.Loops[i].RoundsAlone = append(r.Loops[i].RoundsAlone, alone)
			r.Loops[i].RoundsInTurns = append(r.Loops[i].RoundsInTurns, inTurns)
			i++
		}
	}
	return nil
}

// checkpoints measures what they cost on one core, which the training and the writing share.
func (r *trainerReport) checkpoints(ctx context.Context, ours contender, cores []int, opts options, out io.Writer) error {
	dir, err := filepath.Abs(".cache") // Where a training's are too: no file system in memory.
	if err != nil {
		return err
	}
	for i, c := range []struct {
		model               string
		every, batch, steps int
	}{{"cnn", 50, opts.batch, 200}, {"dense", 20, 8, 80}} {
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
		r.Loops[i].Alone, r.Loops[i].InTurns = medians(r.Loops[i].RoundsAlone), medians(r.Loops[i].RoundsInTurns)
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

// markdown is the report as tables.
func (r trainerReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The trainer\n\n")
	fmt.Fprintf(&b, "Training loops on 10,000 random images in memory, shuffled, %d a rank and step, Adam, the loss logged every 50 steps; one core a rank; median of %d rounds of\n"+
		"%d steps (20 times as many for linear), taken in turn. cnn has 421,642 parameters, linear 7,850. What a trainer costs over a bare loop, written by hand over the\n"+
		"same model and loader, is measured in one process in which the two take turns step by step: the median of the differences, so that other programs slow both down.\n"+
		"%s, load average before: %s.\n\n", r.Batch, r.Rounds, r.Steps, r.CPU, r.Load)
	fmt.Fprintf(&b, "| model | ranks | | images/s | ms a step | CPU ms a step | over a bare step, ms | gonbatch is |\n|---|--:|---|--:|--:|--:|--:|--:|\n")
	for i, row := range r.Loops {
		ours := r.Loops[i/2*2].Alone.ImagesPerSecond
		fmt.Fprintf(&b, "| %s | %d | %s | %.0f | %.3f | %.3f | %.3f (%.1f %%) | %.2f x |\n", row.Model, row.Ranks, strings.TrimSpace(row.Name+" "+row.Version), row.Alone.ImagesPerSecond,
			row.Alone.MillisPerStep, row.Alone.CPUPerStep, row.InTurns.Over, 100*row.InTurns.Over/row.InTurns.MillisPerStep, ours/row.Alone.ImagesPerSecond)
	}
	fmt.Fprintf(&b, "\nWhat a training feels of a checkpoint (not of the first, whose memory is new), where the files are written on the same core; cnn with Adam's state is 5 MB, dense 500 MB.\n\n")
	fmt.Fprintf(&b, "| model | ms a step | stands still, ms | longer in all until it is written, ms |\n|---|--:|--:|--:|\n")
	for _, row := range r.Checkpoints {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f |\n", row.Model, row.Median.MillisPerStep, row.Median.Stall, row.Median.Extra)
	}
	return b.String()
}
