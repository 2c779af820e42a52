package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// layout is the ranks to measure, and the cores that each of them has.
type layout struct{ ranks, cores int }

// layouts returns those to measure on a number of cores. On four, ranks of one core are compared
// with one rank of four.
func layouts(cores int) []layout {
	if cores < 4 {
		return []layout{{1, 1}, {2, 1}}
	}
	return []layout{{1, 1}, {2, 1}, {4, 1}, {1, 4}}
}

// contenders returns the programs that take the steps, and those that show a limit: what a step's
// products take by themselves, and processes that don't wait for one another.
func (l layout) contenders(ctx context.Context, n network) ([]contender, error) {
	if l.cores > 1 {
		return l.onAllCores(ctx, n)
	}
	all, err := contenders(ctx, n, mpi, torchrun)
	if err != nil {
		return nil, err
	}
	limits, err := contenders(ctx, n, apart, torchrun)
	if err != nil {
		return nil, err
	}
	switch ours := limits[0]; {
	case l.ranks > 1:
		ours.name, ours.apart = oursApart, true
		all = append(append(all, ours), n.dividing(all[0], all[1])...)
	case n.products:
		ours = ours.with("--products")
		ours.name = "gonbatch, products alone"
		all = append(all, ours)
	}
	return all, nil
}

// dividing returns the two contenders with the optimizer's state divided among the ranks, of a
// network with so many parameters that it matters.
func (n network) dividing(ours, torch contender) []contender {
	if !n.zero1 {
		return nil
	}
	ours, torch = ours.dividing(), torch.dividing()
	ours.name, torch.name = oursZero1, "PyTorch ZeroRedundancyOptimizer, best settings"
	return []contender{ours, torch}
}

// onAllCores are the contenders of one rank.
func (l layout) onAllCores(ctx context.Context, n network) ([]contender, error) {
	all, err := contenders(ctx, n, func(program string) starter { return onCores(program) }, func(command ...string) starter {
		return onCores(append([]string{"env", "WORLD_SIZE=1", "RANK=0"}, command...)...)
	})
	if err != nil {
		return nil, err
	}
	devices := all[0].environ(fmt.Sprint(rundir.EnvDevices, "=", l.cores))
	devices.name = "gonbatch, a device for each core"
	return slices.Insert(all, 1, devices), nil
}

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

// stepRow is one contender on one layout. The first row for each layout is gonbatch's, as is the
// first of those with zero1.
type stepRow struct {
	Name            string    `json:"name"`
	Version         string    `json:"version,omitempty"`
	Of              string    `json:"of,omitempty"` // The contender that was the faster of two.
	Zero1           bool      `json:"zero1,omitempty"`
	Ranks           int       `json:"ranks"`
	Cores           int       `json:"cores_per_rank"`
	ImagesPerSecond float64   `json:"images_per_second"`
	MillisPerStep   float64   `json:"ms_per_step"`
	CPUPerStep      float64   `json:"cpu_ms_per_step"`
	FirstStep       float64   `json:"first_step_seconds"`
	PeakMB          float64   `json:"peak_mb"`
	All             []float64 `json:"all_images_per_second"`
}

// measureSteps makes all contenders take turns, with as many cores for each rank.
func measureSteps(ctx context.Context, opts options, out io.Writer) (stepReport, error) {
	report := stepReport{CPU: cpuModel(), Load: loadAverage(), Rounds: opts.rounds}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if len(available) < 2 {
		return report, fmt.Errorf("%s available, and two ranks that need one each: use a machine with more", plural.Of(len(available), "core"))
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

// turn is a contender on a layout, with what it measured in each round.
type turn struct {
	contender
	layout
	measured []measurement
}

// turns returns those of a network, in their order.
func (n network) turns(ctx context.Context, cores int) ([]*turn, error) {
	var all []*turn
	for _, l := range layouts(cores) {
		contenders, err := l.contenders(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, c := range contenders {
			all = append(all, &turn{contender: c, layout: l})
		}
	}
	return all, nil
}

// measure makes the contenders on a network take turns.
func (n network) measure(ctx context.Context, cores []int, opts options, out io.Writer) (stepNetwork, error) {
	found := stepNetwork{Name: n.name, Title: n.title, Batch: opts.batch, Steps: opts.steps}
	turns, err := n.turns(ctx, len(cores))
	if err != nil {
		return found, err
	}
	for round := range opts.rounds {
		for _, t := range turns {
			m, err := t.measure(ctx, cores[:t.ranks*t.cores], opts)
			if err != nil {
				return found, err
			}
			fmt.Fprintf(out, "%s, round %d: %-27s %s of %s %8.1f images/s %8.2f ms\n",
				n.name, round+1, t.name, plural.Of(t.ranks, "rank"), plural.Of(t.cores, "core"), m.ImagesPerSecond, m.MillisPerStep)
			t.measured = append(t.measured, m)
		}
	}
	for _, t := range turns {
		row := stepRow{Name: t.name, Ranks: t.ranks, Cores: t.cores, Zero1: t.zero1}
		row.fill(t.measured)
		found.Rows = append(found.Rows, row)
	}
	found.addFaster()
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

// median returns the median of a value over measurements: of an even number, the mean of the two in
// the middle.
func median[M any](all []M, value func(M) float64) float64 {
	values := make([]float64, len(all))
	for i, m := range all {
		values[i] = value(m)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
