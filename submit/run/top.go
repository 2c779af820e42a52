package run

import (
	"context"
	"math"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/report"
)

// curvePoints is how many of a metric's newest values Top returns.
const curvePoints = 24

// Watch remembers the metrics of runs, of which Top reads only what is new.
type Watch struct {
	readers map[string]*rundir.MetricsReader
}

// Top returns a report on the runs that have not ended, with their losses.
func (rs *Runs) Top(ctx context.Context, w *Watch, everywhere bool) (report.Top, error) {
	top := report.Top{Runs: []report.TopRun{}}
	list, err := rs.List(ctx, Filter{States: []string{"active"}, Everywhere: everywhere})
	if err != nil {
		return top, err
	}
	for _, r := range list.Runs {
		one := report.TopRun{Run: r.Run, Directory: r.Directory, Job: r.Job, State: r.State, Message: r.Message}
		w.addLoss(&one)
		top.Runs = append(top.Runs, one)
	}
	return top, nil
}

// addLoss adds the newest values of the run's loss, if it has logged one.
func (w *Watch) addLoss(to *report.TopRun) {
	if w.readers == nil {
		w.readers = map[string]*rundir.MetricsReader{}
	}
	if w.readers[to.Run] == nil {
		w.readers[to.Run] = &rundir.MetricsReader{File: rundir.At(to.Directory).Metrics()}
	}
	all, _ := w.readers[to.Run].Read() // Without metrics, the run's state is all that there is.
	to.Metric = lossOf(all)
	for _, m := range slices.Backward(all) {
		if v, ok := m.Values[to.Metric]; ok && len(to.Values) < curvePoints && !math.IsInf(v, 0) && !math.IsNaN(v) {
			to.Step, to.Values = max(to.Step, m.Step), append(to.Values, v)
		}
	}
	slices.Reverse(to.Values)
}

// lossOf returns the name of the training's loss, or else of another one; "" if there is none.
func lossOf(all []rundir.Measurement) (name string) {
	for _, m := range all {
		for n := range m.Values {
			if n == "train/loss" {
				return n
			}
			if strings.HasSuffix(n, "loss") && (name == "" || n < name) {
				name = n
			}
		}
	}
	return name
}
