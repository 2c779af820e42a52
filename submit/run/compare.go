package run

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/logger/drawing"
	"gonbatch/submit"
	"gonbatch/submit/report"
	"gonbatch/submit/result"
)

// Comparison is a request for a table of runs.
type Comparison struct {
	// Words name runs, as in Find, or all runs of a job name. Without any, Filter picks the runs.
	Words []string
	Filter
	// Sort is the column by which rows are sorted, "" for the order of the runs. Reverse puts the
	// largest value first. Rows without a number come last.
	Sort    string
	Reverse bool
	// Plot is a file for a picture of the runs' Metric over the steps; "" for none.
	Plot, Metric string
}

// Compare returns a table of runs: what differs between them, how they ended, how long they took,
// and their newest metrics.
func (rs *Runs) Compare(ctx context.Context, c Comparison) (table report.Comparison, err error) {
	views, err := rs.compared(ctx, c)
	if err != nil {
		return table, err
	}
	defer func() { // Package result is for notebooks, where an error is a panic.
		p := recover()
		failure, ok := p.(error)
		if _, bug := p.(runtime.Error); p != nil && (bug || !ok) {
			panic(p)
		}
		if ok {
			err = fmt.Errorf("compare: %w", failure)
		}
	}()
	results := make([]result.Run, len(views))
	ends := map[string][]string{}
	for i, view := range views {
		results[i] = result.At(view.Directory)
		ends[view.Run] = []string{view.State, took(results[i].Manifest(), rs.Now())}
	}
	t := result.Compare(results...)
	table.Columns = slices.Concat(t.Columns, []string{"state", "time"})
	for _, row := range t.Rows {
		table.Rows = append(table.Rows, slices.Concat(row, ends[row[0]]))
	}
	if c.Plot != "" {
		if err := rs.plot(c, results, t); err != nil {
			return table, err
		}
	}
	return table, sortRows(table, c)
}

// plot draws the runs' metric. The curves are named by what differs between the runs.
func (rs *Runs) plot(c Comparison, runs []result.Run, t result.Table) error {
	names := map[string][]string{}
	for _, row := range t.Rows {
		for i, column := range t.Columns[1:] {
			if setting := row[i+1]; setting != "" && !strings.Contains(column, "/") && !slices.Contains(notSettings, column) {
				names[row[0]] = append(names[row[0]], column+"="+setting)
			}
		}
	}
	picture := drawing.Picture{Values: c.Metric, Wide: true}
	for _, r := range runs {
		var points plotter.XYs
		if _, ok := r.Latest()[c.Metric]; ok {
			for _, p := range r.Series(c.Metric) {
				if math.Abs(p.Value) <= drawing.Largest { // Not NaN.
					points = append(points, plotter.XY{X: float64(p.Step), Y: p.Value})
				}
			}
		}
		if len(points) > 0 {
			picture.Curves = append(picture.Curves, drawing.Curve{Name: cmp.Or(strings.Join(names[r.Name()], " "), r.Name()), Points: points})
		}
	}
	if len(picture.Curves) == 0 {
		metrics := slices.DeleteFunc(slices.Clone(t.Columns), func(column string) bool { return !strings.Contains(column, "/") })
		return submit.Usagef("--metric=%s: no run has values of it to draw; the runs have %s", c.Metric, cmp.Or(strings.Join(metrics, ", "), "no metrics"))
	}
	if lacking := len(runs) - len(picture.Curves); lacking > 0 {
		rs.Warn("%s without %s not in the picture", plural.Of(lacking, "run"), c.Metric)
	}
	return picture.Write(c.Plot)
}

// notSettings are columns of a comparison, besides the metrics, whose names have a slash.
var notSettings = []string{"training", "step", "epoch"}

// compared returns the runs that a request names or picks.
func (rs *Runs) compared(ctx context.Context, c Comparison) (views []report.Run, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	list, err := rs.List(ctx, c.Filter)
	if err != nil {
		return nil, err
	}
	if len(c.Words) == 0 {
		views = slices.DeleteFunc(list.Runs, func(r report.Run) bool { return r.Error != "" }) // The list says so.
	}
	for _, word := range c.Words {
		found := len(views)
		for _, view := range list.Runs {
			if rundir.At(view.Directory).JobName() == rundir.Slug(word) || view.Sweep == word {
				views = append(views, view)
			}
		}
		if len(views) > found {
			continue
		}
		if all := rs.OfSweep(word); len(all) > 0 { // In another folder.
			there := *rs
			there.Root = all[0].Dir.Root()
			more, err := there.List(ctx, Filter{Sweep: word})
			if err != nil {
				return nil, err
			}
			views = append(views, more.Runs...)
			continue
		}
		r, err := rs.Find(word)
		if err != nil {
			return nil, err
		}
		view, err := rs.Report(ctx, r)
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	if len(views) == 0 {
		return nil, submit.Usagef("no runs in %s that match: nothing to compare", rs.Root)
	}
	return views, nil
}

// took returns how long a run has taken, from its submission on; "" if it was not submitted.
func took(m rundir.Manifest, now time.Time) string {
	begin := m.Created
	if m.Submitted != nil {
		begin = *m.Submitted
	}
	switch {
	case m.Ended != nil:
		now = *m.Ended
	case m.State == "":
		return ""
	}
	return now.Sub(begin).Round(time.Second).String()
}

// sortRows sorts a table by a column.
func sortRows(table report.Comparison, c Comparison) error {
	if c.Sort == "" {
		if c.Reverse {
			slices.Reverse(table.Rows)
		}
		return nil
	}
	at := slices.Index(table.Columns, c.Sort)
	if at < 0 {
		return submit.Usagef("--sort=%q: the columns are %s", c.Sort, strings.Join(table.Columns, ", "))
	}
	number := func(row []string) float64 {
		v, err := strconv.ParseFloat(row[at], 64)
		if d, isTime := time.ParseDuration(row[at]); err != nil && isTime == nil {
			v, err = d.Seconds(), nil
		}
		if err != nil || math.IsNaN(v) {
			return math.Inf(1)
		}
		if c.Reverse {
			return -v
		}
		return v
	}
	numbers := slices.ContainsFunc(table.Rows, func(row []string) bool { return !math.IsInf(number(row), 1) })
	slices.SortStableFunc(table.Rows, func(a, b []string) int {
		if numbers {
			return cmp.Compare(number(a), number(b))
		}
		order := strings.Compare(a[at], b[at])
		if c.Reverse {
			order = -order
		}
		return order
	})
	return nil
}
