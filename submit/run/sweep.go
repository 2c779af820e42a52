package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export"
	"gonbatch/submit/report"
)

// The keys of a sweep in the options of its runs' manifests: its name, the number of the run from
// 1, the run's values, and how many jobs may run at the same time.
const (
	sweepOption       = "sweep"
	sweepNumberOption = "sweep-number"
	sweepValuesOption = "sweep-values"
	sweepAtOnceOption = "sweep-at-once"
)

// sweepInfix is a part of each sweep's name.
const sweepInfix = "-sweep-"

// Sweep is a request for a run of a notebook with each combination of some values.
type Sweep struct {
	// Axes are NAME=VALUE,... of parameters or flags, as parseAxes reads them.
	Axes []string
	// Random is how many points with random values to run, instead of all combinations; 0 for
	// these.
	Random int
	// Extend is the name of a sweep to which the runs belong; "" for a new one.
	Extend string
	// Scaling are numbers of nodes, or of ranks on this machine, with commas between them: a run
	// for each, instead of Axes.
	Scaling string
	// AtOnce is how many of the jobs may run at the same time; 0 for all.
	AtOnce int
}

// points returns the points of a sweep. It refuses options that mean nothing, or don't go together.
func (s Sweep) points(batch bool) ([]point, error) {
	switch {
	case s.Scaling != "" && len(s.Axes) > 0:
		return nil, submit.Usagef("--scaling and --sweep: give one of them")
	case (s.Random > 0 || s.Extend != "") && len(s.Axes) == 0:
		return nil, submit.Usagef("--random and --extend are about --sweep: give its values")
	case s.Random < 0 || s.Random > maxPoints:
		return nil, submit.Usagef("--random=%d: must be between 1 and %d", s.Random, maxPoints)
	case s.AtOnce < 0:
		return nil, submit.Usagef("--at-once=%d: must be at least 0 (0 means all)", s.AtOnce)
	case s.Scaling != "":
		sizes, err := parseScaling(s.Scaling, batch)
		return grid([]axis{sizes}), err
	}
	axes, err := parseAxes(s.Axes, s.Random > 0)
	if err != nil || s.Random == 0 {
		return grid(axes), err
	}
	return drawPoints(axes, s.Random)
}

// sweep submits a run for each point. It checks all of them before it submits the first.
func (rs *Runs) sweep(ctx context.Context, req Request) error {
	_, batch := req.Scheduler.(submit.Batch)
	points, err := req.Sweep.points(batch)
	if err != nil {
		return err
	}
	if req.DryRun || req.NoSubmit || req.From != "" {
		return submit.Usagef("--sweep submits many runs: leave out --dry-run, --no-submit and --from")
	}
	if batch && req.Sweep.AtOnce > 0 {
		if err := mayWait(req.Job, "--at-once"); err != nil {
			return err
		}
	}
	var before []Run
	if before, points, err = rs.extended(req, points); err != nil {
		return err
	}
	if len(before) > 0 && req.Sweep.AtOnce == 0 {
		req.Sweep.AtOnce = atOnceOf(before[0].Manifest)
	}
	requests, err := rs.sweepRequests(ctx, req, before, points)
	if err != nil {
		return err
	}
	done := report.Sweep{Sweep: requests[0].Options[sweepOption].(string), Runs: []report.SweepRun{}}
	queue, staged := lanesOf(done.Sweep, req.Sweep.AtOnce, rs.lookAll(ctx, before)), map[string]bool{}
	var failures []error
	for i, one := range requests {
		title := fmt.Sprintf("%s (%d of %d)", points[i], i+1, len(points))
		if err := queue.join(&one.Job); err != nil {
			return rs.cutSweep(done, err, req.JSON)
		}
		one.NoSubmit = len(staged) > 0
		s, err := rs.start(ctx, one)
		if errors.Is(err, submit.ErrQueueFull) {
			err, done.Full = nil, firstLine(err)
		}
		if err != nil {
			return rs.cutSweep(done, fmt.Errorf("%s: %w", title, err), req.JSON)
		}
		done.Runs = append(done.Runs, report.SweepRun{Settings: points[i].String(), Run: s.Spec.RunDir.Name(), Directory: s.Spec.RunDir.Path(), Job: string(s.Job.ID)})
		if batch {
			if s.Job.ID == "" {
				staged[s.Spec.RunDir.Name()] = true
				done.Staged = len(staged)
			}
			continue
		}
		fmt.Fprintf(rs.Err, "submit: %s\n", title)
		if err := rs.runForeground(ctx, req.Scheduler.(submit.Foreground), s); err != nil {
			if ctx.Err() != nil {
				return rs.cutSweep(done, err, req.JSON)
			}
			failures = append(failures, fmt.Errorf("%s: %w", title, err))
			fmt.Fprintf(rs.Err, "submit: %s: %s\n", title, firstLine(err))
		}
	}
	err = report.Write(rs.Out, req.JSON, done)
	if batch && req.Follow && err == nil {
		err = rs.followSweep(ctx, done.Sweep, staged, unchanged)
	}
	if req.Sweep.Scaling != "" && (req.Follow || !batch) {
		table, scalingErr := rs.Scaling(context.WithoutCancel(ctx), done.Sweep)
		err = errors.Join(err, scalingErr, report.Write(rs.Out, req.JSON, table))
	}
	if len(failures) > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %s failed; the first: %w", len(failures), plural.Of(len(points), "run"), failures[0]))
	}
	return err
}

// extended returns the runs of the sweep that a request extends, and those of the points that it
// has not yet.
func (rs *Runs) extended(req Request, points []point) (before []Run, missing []point, err error) {
	name := req.Sweep.Extend
	if name == "" {
		return nil, points, nil
	}
	if before = rs.OfSweep(name); len(before) == 0 {
		return nil, nil, submit.Usagef("--extend=%s: there is no such sweep in %s", name, rs.Root)
	}
	if root, err := filepath.Abs(rs.Root); err != nil || before[0].Dir.Root() != root {
		return nil, nil, cmp.Or(err, submit.Usagef("--extend=%s: it is in %s: add --run-root %s", name, before[0].Dir.Root(), shellescape.Quote(before[0].Dir.Root())))
	}
	missing = slices.DeleteFunc(points, func(p point) bool {
		return slices.ContainsFunc(before, func(r Run) bool {
			return !slices.ContainsFunc(p, func(s setting) bool { return !hasValue(r.Manifest, s.name, s.value) })
		})
	})
	if len(missing) == 0 {
		return nil, nil, submit.Usagef("--extend=%s: it has all of these runs already: submit resume %[1]s runs those again that did not complete", name)
	}
	return before, missing, nil
}

// cutSweep reports the runs of a sweep that ended before all were submitted.
func (rs *Runs) cutSweep(done report.Sweep, err error, asJSON bool) error {
	if len(done.Runs) == 0 {
		return err
	}
	return errors.Join(report.Write(rs.Out, asJSON, done), err)
}

// sweepRequests returns a request for each point, whose values it checks. before are the runs of
// the sweep that they extend.
func (rs *Runs) sweepRequests(ctx context.Context, req Request, before []Run, points []point) (all []Request, err error) {
	m, err := req.Notebook.Export(ctx, rs.Shell)
	if err != nil {
		return nil, err
	}
	spec, err := rs.complete(ctx, req, m)
	if err != nil {
		return nil, err
	}
	isFlag := map[string]bool{}
	if req.Sweep.Scaling == "" {
		for _, s := range points[0] {
			if isFlag[s.name], err = flagOf(m, s.name); err != nil {
				return nil, err
			}
		}
	}
	name := fmt.Sprintf("%s%s%s-%04x", rundir.Slug(spec.Name), sweepInfix, rs.Now().Format("20060102-150405"), rand.N(1<<16))
	last := 0
	if len(before) > 0 {
		name = req.Sweep.Extend
		_, last = valuesOf(before[len(before)-1].Manifest)
	}
	for i, p := range points {
		one := req
		one.Sweep = Sweep{} // Each size is planned by itself.
		one.Options = maps.Clone(req.Options)
		one.Options[sweepOption], one.Options[sweepNumberOption], one.Options[sweepValuesOption] = name, last+i+1, p.String()
		if req.Sweep.AtOnce > 0 {
			one.Options[sweepAtOnceOption] = req.Sweep.AtOnce
		}
		if req.Sweep.Scaling != "" {
			_, batch := req.Scheduler.(submit.Batch)
			resize(&one.Job, p, batch)
		} else {
			one.planned = i > 0
			err = rs.setPoint(ctx, &one, p, isFlag)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// setPoint gives a run its values. It refuses those that don't fit the types of the parameters and
// flags.
func (rs *Runs) setPoint(ctx context.Context, one *Request, p point, isFlag map[string]bool) error {
	one.Notebook.ParamValues = slices.Clone(one.Notebook.ParamValues)
	var flags []string
	for _, s := range p {
		if isFlag[s.name] {
			flags = append(flags, "-"+s.name+"="+s.value)
		} else {
			one.Notebook.ParamValues = append(one.Notebook.ParamValues, s.name+"="+s.value)
			one.Notebook.AtRunTime = append(one.Notebook.AtRunTime, s.name)
		}
	}
	one.Job.Args = append(flags, one.Job.Args...) // The first argument that is no flag ends the flags.
	if err := one.Notebook.Open(one.Path); err != nil {
		return err
	}
	quiet := rs.Shell // The warnings are those of the notebook, which has been exported before.
	quiet.Err = io.Discard
	m, err := one.Notebook.Export(ctx, quiet)
	if err == nil {
		spec := one.Job
		spec.Cells = m.Cells
		err = one.Notebook.CheckArgs(quiet, m, spec)
	}
	if err != nil {
		return submit.UsageError{Err: fmt.Errorf("--sweep, %s: %w", p, err)}
	}
	return nil
}

// flagOf reports whether a name of a sweep is a flag's, and refuses one that is neither a flag's
// nor a parameter's.
func flagOf(m *export.Module, name string) (bool, error) {
	var names []string
	for _, p := range m.Parameters {
		names = append(names, p.Name)
	}
	isParam := slices.Contains(names, name)
	for _, f := range m.Flags {
		names = append(names, f.Name)
	}
	isFlag := slices.Contains(names[len(m.Parameters):], name)
	switch {
	case isParam && isFlag:
		return false, submit.Usagef("--sweep: %s has both a parameter and a flag of the name %s: rename one of them", m.Notebook, name)
	case !isParam && !isFlag:
		if len(names) == 0 {
			return false, submit.Usagef("--sweep: %s has no parameters and no flags: tag the cell that declares %s parameters", m.Notebook, name)
		}
		return false, submit.Usagef("--sweep: %s has no parameter or flag %s; it has %s", m.Notebook, name, strings.Join(names, ", "))
	}
	return isFlag, nil
}

// SweepOf returns the name of the sweep that a run is of; "" if it is of none.
func SweepOf(m rundir.Manifest) string {
	name, _ := m.Options[sweepOption].(string)
	return name
}

// valuesOf returns a run's values in its sweep, and its number there.
func valuesOf(m rundir.Manifest) (values string, number int) {
	values, _ = m.Options[sweepValuesOption].(string)
	n, _ := m.Options[sweepNumberOption].(float64)
	return values, int(n)
}

// OfSweep returns the runs of a sweep in their order; none if there is no such sweep.
func (rs *Runs) OfSweep(name string) (all []Run) {
	if !strings.Contains(name, sweepInfix) {
		return nil
	}
	for _, root := range append([]string{rs.Root}, rs.elsewhere()...) {
		dirs, _ := rundir.List(root) // Who looks for a run gets the error.
		for _, d := range dirs {
			if r, err := rs.open(d); err == nil && SweepOf(r.Manifest) == name {
				all = append(all, r)
			}
		}
		if len(all) > 0 {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b Run) int {
		_, first := valuesOf(a.Manifest)
		_, second := valuesOf(b.Manifest)
		return first - second
	})
	return all
}

// FindAll finds the runs that a word names: those of a sweep, or the run of FindWhole.
func (rs *Runs) FindAll(word string) ([]Run, error) {
	if all := rs.OfSweep(word); len(all) > 0 {
		return all, nil
	}
	r, err := rs.FindWhole(word)
	return []Run{r}, err
}
