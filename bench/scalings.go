package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonbatch/internal/compilecache"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// scalingReport is the result of measureScaling.
type scalingReport struct {
	CPU      string            `json:"cpu"`
	Load     string            `json:"load_average_before"`
	Rounds   int               `json:"rounds"`
	Here     link              `json:"this_machine"`
	Ring     link              `json:"this_machine_tcp"`
	Networks []scalingNetwork  `json:"networks"`
	Assumed  []link            `json:"assumed_links"`
	Carried  []scalingForecast `json:"forecasts"`
}

// scalingNetwork is a network with its measured training steps. Millis is their time on each number
// of ranks, from 1.
type scalingNetwork struct {
	Name       string      `json:"name"`
	Parameters int         `json:"parameters"`
	Batch      int         `json:"batch_per_rank"`
	Millis     []float64   `json:"ms_per_step"`
	Rounds     [][]float64 `json:"rounds"`
}

// scalingForecast is what the model says of a network on a link: the time of a step on 1, 2, 4, ...
// ranks.
type scalingForecast struct {
	Network string    `json:"network"`
	Link    string    `json:"link"`
	Ranks   []int     `json:"ranks"`
	Millis  []float64 `json:"ms_per_step"`
}

// scaled are the networks of the model, and on how many ranks their steps are measured.
var scaled = []struct {
	name       string
	parameters int
	ranks      int
	steps      int
}{{"cnn", 421_642, 4, 30}, {"mlp", 100_728_842, 4, 4}, {"resnet18", 11_173_962, 1, 4}}

// mostScalingRounds keeps the measurement short. largestWorld is how far the model is carried.
const mostScalingRounds, largestWorld = 2, 1024

// measureScaling holds the model of docs/scaling.md against measured steps, and carries it on. Its
// all-reduces are those of the last measurement of them.
func measureScaling(ctx context.Context, opts options, out io.Writer) (scalingReport, error) {
	report := scalingReport{CPU: cpuModel(), Load: loadAverage(), Rounds: min(opts.rounds, mostScalingRounds), Assumed: assumedLinks}
	if err := report.fit(filepath.Join(opts.out, "allreduce.json")); err != nil {
		return report, err
	}
	available, err := cores()
	if err != nil {
		return report, err
	}
	program, err := build(ctx, "./bench/step", "bench-step")
	if err != nil {
		return report, err
	}
	ours := contender{name: "gonbatch", start: mpi(program)}.environ(rundir.EnvCompileCache + "=" + compilecache.Off)
	for _, s := range scaled {
		n := scalingNetwork{Name: s.name, Parameters: s.parameters, Batch: networkNamed(s.name).batch}
		own := opts
		own.rounds, own.batch, own.steps = report.Rounds, n.Batch, s.steps
		if err := n.measure(ctx, ours.with("--model="+s.name, "--warm-up=2"), available[:min(s.ranks, len(available))], own, out); err != nil {
			return report, err
		}
		report.Networks = append(report.Networks, n)
	}
	report.carry()
	return report, report.draw(cmp.Or(opts.picture, filepath.Join(opts.out, "scaling.svg")))
}

func networkNamed(name string) network {
	for _, n := range networks {
		if n.name == name {
			return n
		}
	}
	return network{}
}

// fit reads the measured all-reduces.
func (r *scalingReport) fit(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("the model needs measured all-reduces: first run go run ./bench -only allreduce: %w", err)
	}
	var reduced allReduceReport
	if err := json.Unmarshal(text, &reduced); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.Here, err = fit(reduced.Worlds, inProgram, false); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if r.Ring, err = fit(reduced.Worlds, overTCP, true); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// measure fills in the times of steps.
func (n *scalingNetwork) measure(ctx context.Context, c contender, cores []int, opts options, out io.Writer) error {
	n.Rounds = make([][]float64, len(cores))
	for round := range opts.rounds {
		for i := range cores {
			m, err := c.measure(ctx, cores[:i+1], opts)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s, round %d: %s %8.2f ms\n", n.Name, round+1, plural.Of(i+1, "rank"), m.MillisPerStep)
			n.Rounds[i] = append(n.Rounds[i], m.MillisPerStep)
		}
	}
	for _, millis := range n.Rounds {
		n.Millis = append(n.Millis, median(millis, func(x float64) float64 { return x }))
	}
	return nil
}

// carry fills in the forecasts.
func (r *scalingReport) carry() {
	r.Carried = nil
	for _, n := range r.Networks {
		for _, l := range r.Assumed {
			f := scalingForecast{Network: n.Name, Link: l.Name}
			for ranks := 1; ranks <= largestWorld; ranks *= 2 {
				f.Ranks, f.Millis = append(f.Ranks, ranks), append(f.Millis, l.step(ranks, n.Millis[0], n.Parameters))
			}
			r.Carried = append(r.Carried, f)
		}
	}
}

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
	fmt.Fprintf(&b, "\n## Model and measurement\n\nTraining steps over Open MPI, one core per rank: medians of %s.\n\n", plural.Of(r.Rounds, "round"))
	fmt.Fprintf(&b, "| network | ranks | measured | model | error |\n|---|--:|--:|--:|--:|\n")
	for _, n := range r.Networks {
		for i, measured := range n.Millis[1:] {
			model := r.Here.step(i+2, n.Millis[0], n.Parameters)
			fmt.Fprintf(&b, "| %s | %d | %s ms | %s ms | %+.0f %% |\n", n.Name, i+2, micros(measured), micros(model), 100*(model-measured)/measured)
		}
	}
	fmt.Fprintf(&b, `
## Carried to %d ranks

Extrapolated: each rank computes as one core of this machine does, and has a link of its own. In
brackets: the efficiency, which is the time of a step on one rank divided by that on all.
`, largestWorld)
	for _, n := range r.Networks {
		r.writeForecast(&b, n)
	}
	return b.String()
}

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
			millis := l.step(ranks, n.Millis[0], n.Parameters)
			fmt.Fprintf(b, " %s ms (%.0f %%) |", micros(millis), 100*n.Millis[0]/millis)
		}
		b.WriteString("\n")
	}
}
