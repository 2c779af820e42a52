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

// loopRow is a loop with one model on a number of ranks. It comes after the bare loop of the same library.
type loopRow struct {
	Name          string        `json:"name"`
	Version       string        `json:"version,omitempty"`
	Model         string        `json:"model"`
	Ranks         int           `json:"ranks"`
	Median        measurement   `json:"median"`
	Rounds        []measurement `json:"rounds"`
	OverBare      float64       `json:"ms_over_bare"`
	OverBareOfCPU float64       `json:"cpu_ms_over_bare"`
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
	ours := contender{name: "gonbatch", start: mpi(program)}
	theirs := contender{name: "PyTorch", start: torchrun(filepath.Join(".cache", "bench-venv", "bin", "python"), "bench/peers/lightning_loop.py")}
	lightning := theirs
	lightning.name = "Lightning"
	ourTrainer := ours
	ourTrainer.name = "gonbatch, package trainer"
	loops := []contender{ours.with("--loop=bare"), ourTrainer.with("--loop=trainer"), theirs.with("--loop=bare"), lightning.with("--loop=trainer")}
	for round := range opts.rounds {
		if err := report.loops(ctx, round, loops, available, opts, out); err != nil {
			return report, err
		}
		if err := report.checkpoints(ctx, ours, available, opts, out); err != nil {
			return report, err
		}
	}
	report.summarize()
	return report, nil
}

func (r *trainerReport) loops(ctx context.Context, round int, loops []contender, cores []int, opts options, out io.Writer) error {
	i := 0
	for _, c := range trainerCases {
		for _, loop := range loops {
			scaled := opts
			scaled.steps *= c.times
			m, err := loop.with("--model="+c.model).measure(ctx, cores[:c.ranks], scaled)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "round %d: %-26s %-6s %d ranks %8.0f images/s %7.3f ms, CPU %7.3f ms\n", round+1, loop.name, c.model, c.ranks, m.ImagesPerSecond, m.MillisPerStep, m.CPUPerStep)
			if round == 0 {
				r.Loops = append(r.Loops, loopRow{Name: loop.name, Version: m.Version, Model: c.model, Ranks: c.ranks})
			}
			r.Loops[i].Rounds = append(r.Loops[i].Rounds, m)
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
	}{{"cnn", 50, opts.batch, 250}, {"dense", 20, 8, 120}} {
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

// summarize takes medians: over the rounds, and of the differences within each round.
func (r *trainerReport) summarize() {
	for i := range r.Loops {
		row := &r.Loops[i]
		row.Median = medians(row.Rounds)
		if i%2 == 0 {
			continue
		}
		bare := r.Loops[i-1].Rounds
		over := make([]measurement, len(bare))
		for round, m := range row.Rounds {
			over[round] = measurement{MillisPerStep: m.MillisPerStep - bare[round].MillisPerStep, CPUPerStep: m.CPUPerStep - bare[round].CPUPerStep}
		}
		row.OverBare, row.OverBareOfCPU = medians(over).MillisPerStep, medians(over).CPUPerStep
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
		Stall:           median(all, func(m measurement) float64 { return m.Stall }),
		Extra:           median(all, func(m measurement) float64 { return m.Extra }),
	}
}

// markdown is the report as tables.
func (r trainerReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The trainer\n\n")
	fmt.Fprintf(&b, "Whole training loops on 10,000 random images in memory, shuffled, %d a rank and step, Adam, the loss logged every 50 steps; one core a rank; median of\n"+
		"%d rounds of %d steps (20 times as many for linear), taken in turn. A bare loop is written by hand over the same model and loader. What a loop costs over it is\n"+
		"the median of the differences within a round; that of the CPU time suffers less from other programs. cnn has 421,642 parameters, linear 7,850.\n"+
		"%s, load average before: %s.\n\n", r.Batch, r.Rounds, r.Steps, r.CPU, r.Load)
	fmt.Fprintf(&b, "| model | ranks | loop | images/s | ms a step | CPU ms a step | over its bare loop, ms | of CPU time, ms | gonbatch's trainer is |\n|---|--:|---|--:|--:|--:|--:|--:|--:|\n")
	for i, row := range r.Loops {
		name, over, overOfCPU := row.Name+", bare", "", ""
		if i%2 == 1 {
			name, over, overOfCPU = row.Name, percent(row.OverBare, r.Loops[i-1].Median.MillisPerStep), percent(row.OverBareOfCPU, r.Loops[i-1].Median.CPUPerStep)
		}
		if row.Version != "" {
			name += " " + row.Version
		}
		own := r.Loops[i/4*4+1].Median.ImagesPerSecond
		fmt.Fprintf(&b, "| %s | %d | %s | %.0f | %.3f | %.3f | %s | %s | %.2f x |\n", row.Model, row.Ranks, name, row.Median.ImagesPerSecond, row.Median.MillisPerStep,
			row.Median.CPUPerStep, over, overOfCPU, own/row.Median.ImagesPerSecond)
	}
	fmt.Fprintf(&b, "\nWhat a training on one core, the writing of the files on the same one, feels of a checkpoint (not the first, whose memory is new); cnn with Adam's state 5 MB, dense 500 MB.\n\n")
	fmt.Fprintf(&b, "| model | ms a step | stands still, ms | more in all until it is written, ms |\n|---|--:|--:|--:|\n")
	for _, row := range r.Checkpoints {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f |\n", row.Model, row.Median.MillisPerStep, row.Median.Stall, row.Median.Extra)
	}
	return b.String()
}

func percent(over, of float64) string { return fmt.Sprintf("%.3f (%.1f %%)", over, 100*over/of) }
