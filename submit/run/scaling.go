package run

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// parseScaling parses the sizes of --scaling.
func parseScaling(text string, batch bool) (axis, error) {
	sizes := axis{name: "tasks"}
	if batch {
		sizes.name = "nodes"
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || len(sizes.values) > 0 && word == sizes.values[len(sizes.values)-1] {
			return axis{}, submit.Usagef("--scaling=%q: give different numbers of nodes, or of ranks on this machine, such as 1,2,4", text)
		}
		sizes.values = append(sizes.values, strconv.Itoa(n))
	}
	return sizes, nil
}

// resize gives a job the size of a point of a scaling: nodes or, on this machine, ranks.
func resize(spec *submit.JobSpec, p point, batch bool) {
	n, _ := strconv.Atoi(p[0].value) // parseScaling has checked it.
	if batch {
		spec.Nodes = n
	} else {
		spec.TasksPerNode = n
	}
}

// Scaling compares the speeds of the runs of a scaling with the first one's.
func (rs *Runs) Scaling(ctx context.Context, sweep string) (all report.Scaling, err error) {
	all = report.Scaling{Sweep: sweep, Runs: []report.ScalingRun{}}
	runs := rs.OfSweep(sweep)
	if len(runs) == 0 {
		return all, submit.Usagef("there is no scaling %q in %s: submit --scaling prints its name", sweep, rs.Root)
	}
	surveys := rs.surveys(ctx, runs)
	for _, r := range runs {
		spec, err := submit.ReadSpec(r.Dir)
		if err != nil {
			return all, err
		}
		_, status, err := rs.look(ctx, r, surveys)
		if err != nil {
			return all, err
		}
		one := report.ScalingRun{Run: r.Dir.Name(), Nodes: spec.Nodes, Ranks: spec.Tasks(), State: status.State.String()}
		if one.ExamplesPerSecond, one.DataWait, err = speedOf(r.Dir); err != nil {
			return all, err
		}
		if first := append(all.Runs, one)[0]; first.ExamplesPerSecond > 0 {
			one.Speedup = one.ExamplesPerSecond / first.ExamplesPerSecond
			one.Efficiency = one.Speedup * float64(first.Ranks) / float64(one.Ranks)
		}
		all.Runs = append(all.Runs, one)
	}
	return all, nil
}

// speedOf returns the median speed of a run's training and the median share of time that it waited
// for data. The first report, which has the compilation, counts only if there is no other.
func speedOf(dir rundir.Dir) (examples, wait float64, err error) {
	all, err := rundir.ReadMetrics(dir)
	if err != nil {
		return 0, 0, err
	}
	median := func(name string) float64 {
		var values []float64
		for _, m := range all {
			if value, ok := m.Values[name]; ok {
				values = append(values, value)
			}
		}
		if len(values) > 1 {
			values = values[1:]
		}
		slices.Sort(values)
		if len(values) == 0 {
			return 0
		}
		return values[len(values)/2]
	}
	return median("train/examples_per_second"), median("train/data_wait"), nil
}
