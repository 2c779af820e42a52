package result

import (
	"fmt"
	"html"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/checkpoint/folder"
	"gonbatch/internal/rundir"
	"gonbatch/kernel/display"
)

// Run is a run, identified by its run directory.
type Run struct {
	dir      rundir.Dir
	training string // Only this training run's metrics; "" for all.
}

// At returns the run whose run directory is at path. It doesn't read the directory.
func At(path string) Run { return Run{dir: rundir.At(path)} }

// Find returns the runs whose run directories match a pattern, such as "runs/mnist-*" (see
// filepath.Match), the oldest first.
func Find(pattern string) (runs []Run) {
	paths, err := filepath.Glob(pattern)
	check(err)
	for _, path := range paths { // Sorted; a run's name has its time.
		if _, err := os.Stat(rundir.At(path).ManifestPath()); err == nil {
			runs = append(runs, At(path))
		}
	}
	if len(runs) == 0 {
		panic(fmt.Errorf("result: no run matches %s", pattern))
	}
	return runs
}

// Trainings returns the names of the training runs that have written metrics, in their order. A
// program with a single one has none of these names.
func (r Run) Trainings() (names []string) {
	for _, m := range r.Metrics() {
		if m.Training != "" && !slices.Contains(names, m.Training) {
			names = append(names, m.Training)
		}
	}
	return names
}

// Training returns the run with the metrics of one of its training runs, such as one of a sweep.
func (r Run) Training(name string) Run {
	if all := r.Trainings(); !slices.Contains(all, name) {
		panic(fmt.Errorf("result: the run %s has no training %q, only %q", r.Name(), name, all))
	}
	r.training = name
	return r
}

// Dir returns the path of the run directory.
func (r Run) Dir() string { return r.dir.Path() }

// Name returns the run's name.
func (r Run) Name() string { return r.dir.Name() }

// Manifest returns the run's manifest: notebook, options, versions, state.
func (r Run) Manifest() rundir.Manifest {
	m, err := rundir.ReadManifest(r.dir)
	check(err)
	return m
}

// Metrics returns all measurements of the run, in order.
func (r Run) Metrics() []rundir.Measurement {
	r.mustBeThere()
	all, err := rundir.ReadMetrics(r.dir)
	check(err)
	if r.training != "" {
		all = slices.DeleteFunc(all, func(m rundir.Measurement) bool { return m.Training != r.training })
	}
	return all
}

// mustBeThere panics if the run directory is gone, to distinguish that from a run without metrics.
func (r Run) mustBeThere() {
	_, err := os.Stat(r.Dir())
	check(err)
}

// Latest returns the newest values of all metrics, by name.
func (r Run) Latest() map[string]float64 {
	values := map[string]float64{}
	for _, m := range r.Metrics() {
		maps.Copy(values, m.Values)
	}
	return values
}

// Last returns the newest value of a metric.
func (r Run) Last(name string) float64 {
	all := r.Latest()
	value, ok := all[name]
	if !ok {
		panic(r.unknown(name, all))
	}
	return value
}

// Best returns the smallest value of a metric, or the largest if largest is set, and its step. It
// ignores NaN.
func (r Run) Best(name string, largest bool) Point {
	best, found := Point{Value: math.NaN()}, false
	for _, p := range r.Series(name) {
		if !math.IsNaN(p.Value) && (!found || (p.Value > best.Value) == largest && p.Value != best.Value) {
			best, found = p, true
		}
	}
	return best
}

func (r Run) unknown(name string, all map[string]float64) error {
	if len(all) == 0 {
		return fmt.Errorf("result: the run %s has no metric yet", r.Name())
	}
	return fmt.Errorf("result: the run %s has no metric %q, only %s", r.Name(), name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
}

// Series returns the values of a metric by step.
func (r Run) Series(name string) Series {
	var series Series
	all := r.Metrics()
	for _, m := range all {
		if value, ok := m.Values[name]; ok {
			series = append(series, Point{Step: m.Step, Value: value})
		}
	}
	if series == nil {
		panic(r.unknown(name, r.Latest()))
	}
	return series
}

// Checkpoints returns the checkpoints of all training runs of the run, the newest last. The Err of
// an unusable checkpoint says why.
func (r Run) Checkpoints() []folder.Info {
	paths, err := r.dir.CheckpointFolders()
	check(err)
	all := make([]folder.Info, len(paths))
	for i, path := range paths {
		all[i] = folder.Stat(path)
	}
	slices.SortStableFunc(all, func(a, b folder.Info) int { return a.Time.Compare(b.Time) })
	return all
}

// Checkpoint returns the newest usable checkpoint.
func (r Run) Checkpoint() folder.Info {
	for _, c := range slices.Backward(r.Checkpoints()) {
		if c.Err == nil {
			return c
		}
	}
	panic(fmt.Errorf("result: the run %s has no checkpoint", r.Name()))
}

// Log returns the log of a rank.
func (r Run) Log(rank int) string {
	text, err := rundir.ReadFile(r.dir.RankLog(rank))
	check(err)
	return string(text)
}

// Bundle implements display.Bundler: it shows the run as a table of its newest metrics.
func (r Run) Bundle() display.Bundle {
	latest := r.Latest()
	text, table := strings.Builder{}, strings.Builder{}
	fmt.Fprintf(&text, "run %s", r.Name())
	fmt.Fprintf(&table, "<table><caption>%s</caption>", html.EscapeString(r.Name()))
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		value := strconv.FormatFloat(latest[name], 'g', 6, 64)
		fmt.Fprintf(&text, "\n%s: %s", name, value)
		fmt.Fprintf(&table, `<tr><th style="text-align:left">%s</th><td>%s</td></tr>`, html.EscapeString(name), value)
	}
	return display.Bundle{display.Text: text.String(), display.HTML: table.String() + "</table>"}
}

// String returns the run's name and folder.
func (r Run) String() string { return fmt.Sprintf("run %s in %s", r.Name(), filepath.Dir(r.Dir())) }

func check(err error) {
	if err != nil {
		panic(fmt.Errorf("result: %w", err))
	}
}

// Current returns the run that this program belongs to. ok is false outside a job, such as in a
// notebook's session.
func Current() (r Run, ok bool) {
	env := rundir.ReadEnv(os.Getenv)
	return Run{dir: env.Dir}, env.InRun()
}

// Point is the value of a metric at a step.
type Point struct {
	Step  int64
	Value float64
}

// Series is a metric by step. It implements gonum/plot's XYer.
type Series []Point

// Len returns the number of points.
func (s Series) Len() int { return len(s) }

// XY returns the step and the value of a point.
func (s Series) XY(i int) (x, y float64) { return float64(s[i].Step), s[i].Value }

// Values returns the values without their steps.
func (s Series) Values() []float64 {
	values := make([]float64, len(s))
	for i, p := range s {
		values[i] = p.Value
	}
	return values
}
