package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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
	Nodes    *nodeReport       `json:"nodes,omitempty"` // If it was measured.
	Assumed  []link            `json:"assumed_links"`
	Carried  []scalingForecast `json:"forecasts"`
}

// scalingNetwork is a network with its measured training steps. Millis is their time on each number
// of ranks, from 1; Apart is that of as many processes that each train on their own.
type scalingNetwork struct {
	Name        string      `json:"name"`
	Parameters  int         `json:"parameters"`
	Batch       int         `json:"batch_per_rank"`
	Millis      []float64   `json:"ms_per_step"`
	Apart       []float64   `json:"ms_per_step_on_their_own"`
	Rounds      [][]float64 `json:"rounds"`
	ApartRounds [][]float64 `json:"rounds_on_their_own"`
}

func (n scalingNetwork) gradients() gradients { return networkNamed(n.Name).gradients }

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
	name         string
	ranks, steps int
}{{"cnn", 4, 30}, {"mlp", 4, 4}, {"resnet18", 1, 4}}

// mostScalingRounds keeps the measurement short. largestWorld is how far the model is carried.
const mostScalingRounds, largestWorld = 2, 1024

// measureScaling holds the model of docs/scaling.md against measured steps, and carries it on. Its
// all-reduces are those of the last measurement of them.
func measureScaling(ctx context.Context, opts options, out io.Writer) (scalingReport, error) {
	report := scalingReport{CPU: cpuModel(), Load: loadAverage(), Rounds: min(opts.rounds, mostScalingRounds), Assumed: assumedLinks}
	if err := report.fit(filepath.Join(opts.out, "allreduce.json")); err != nil {
		return report, err
	}
	if err := report.readNodes(filepath.Join(opts.out, "nodes.json")); err != nil {
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
	ours := contender{name: oursTogether, start: mpi(program)}.environ(rundir.EnvCompileCache + "=" + compilecache.Off)
	alone := contender{name: oursApart, start: apart(program)}.environ(rundir.EnvCompileCache + "=" + compilecache.Off)
	for _, s := range scaled {
		of := networkNamed(s.name)
		n := scalingNetwork{Name: s.name, Parameters: of.gradients.parameters, Batch: of.batch}
		own := opts
		own.rounds, own.batch, own.steps = report.Rounds, n.Batch, s.steps
		args := []string{"--model=" + s.name, "--warm-up=2"}
		if err := n.measure(ctx, ours.with(args...), alone.with(args...), available[:min(s.ranks, len(available))], own, out); err != nil {
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

// readNodes reads the steps that were measured on two nodes, if they were.
func (r *scalingReport) readNodes(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r.Nodes)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; measure it again: go run ./bench -only nodes", path, err)
	}
	return nil
}

// measure fills in the times of steps, of ranks together and of ranks on their own.
func (n *scalingNetwork) measure(ctx context.Context, together, apart contender, cores []int, opts options, out io.Writer) error {
	n.Rounds, n.ApartRounds = make([][]float64, len(cores)), make([][]float64, len(cores))
	for round := range opts.rounds {
		for i := range cores {
			for _, c := range []struct {
				contender
				rounds [][]float64
			}{{together, n.Rounds}, {apart, n.ApartRounds}} {
				m, err := c.measure(ctx, cores[:i+1], opts)
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "%s, round %d: %s, %s %8.2f ms\n", n.Name, round+1, c.name, plural.Of(i+1, "rank"), m.MillisPerStep)
				c.rounds[i] = append(c.rounds[i], m.MillisPerStep)
			}
		}
	}
	same := func(x float64) float64 { return x }
	for i := range cores {
		n.Millis, n.Apart = append(n.Millis, median(n.Rounds[i], same)), append(n.Apart, median(n.ApartRounds[i], same))
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
				f.Ranks, f.Millis = append(f.Ranks, ranks), append(f.Millis, l.apart(ranks, n.Millis[0], n.gradients()))
			}
			r.Carried = append(r.Carried, f)
		}
	}
}
