package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/executed"
	"gonbatch/submit/export"
)

// fromOptions are what a submission takes from an earlier run.
type fromOptions struct {
	// From is the cell to start from; what stands before it is reused. Run is the run it is taken from.
	From, Run string
	// Of is the notebook that the given one stands for: a kernel submits its session as a file that is gone afterwards.
	Of string
}

func (o *fromOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.From, "from", "", "start at this cell (a tag, a cell id, a number or a name), and reuse the results of the cells before it from the notebook's last run")
	fs.StringVar(&o.Run, "from-run", "", "run whose results --from reuses, instead of the last one")
	fs.StringVar(&o.Of, "of", "", "notebook that the given one was made from, and counts as a run of")
	annotate(fs, config.FlagOnly, "of")
	fs.Lookup("of").Hidden = true
}

// origin is the path of the notebook that counts as the run's.
func (o *submitOptions) origin() (string, error) { return filepath.Abs(cmp.Or(o.Of, o.Notebook)) }

// checkFrom refuses options that do not go together.
func (o *submitOptions) checkFrom() error {
	switch {
	case o.Run != "" && o.From == "":
		return usage("--from-run=%s needs --from: add --from CELL, the cell to start at", o.Run)
	case o.From != "" && len(o.Cells) > 0:
		return usage("--from and --cell both choose cells: give only one of them")
	}
	return nil
}

// reuse is the part of an earlier run that a new one takes.
type reuse struct {
	dir     rundir.Dir
	earlier *executed.Earlier
	// before is the number of the first cell that runs, and steps are those that do not.
	before int
	steps  []string
}

// findReuse finds what --from takes from an earlier run, and refuses what has changed since; nil without --from.
func (o *submitOptions) findReuse(m *export.Module, spec submit.JobSpec) (*reuse, error) {
	if o.From == "" {
		return nil, nil
	}
	nb, err := readNotebook(o.Notebook)
	if err != nil {
		return nil, err
	}
	r := &reuse{}
	if r.before, err = fromCell(o.From, nb, m); err != nil {
		return nil, err
	}
	for _, step := range m.Steps {
		if step.Cell < r.before {
			r.steps = append(r.steps, step.Name)
		}
	}
	if len(r.steps) == 0 {
		return nil, usage("--from %s: nothing runs before that cell; leave --from out", o.From)
	}
	if r.dir, err = o.earlierRun(); err != nil {
		return nil, err
	}
	if r.earlier, err = executed.ReadEarlier(r.dir); err != nil {
		return nil, fmt.Errorf("--from %s: %w", o.From, err)
	}
	plan, err := newPlan(o, m, nb)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(r.earlier.Check(nb, plan, r.before), r.checkArgs(spec)); err != nil {
		return nil, fmt.Errorf("--from %s: %w", o.From, err)
	}
	return r, nil
}

// run is the name of the run that is reused; empty where none is.
func (r *reuse) run() string {
	if r == nil {
		return ""
	}
	return r.dir.Name()
}

// fromCell is the number of the cell that word names.
func fromCell(word string, nb *nbformat.Notebook, m *export.Module) (int, error) {
	for _, step := range m.Steps {
		if step.Name == word {
			return step.Cell, nil
		}
	}
	for _, cell := range nb.Cells {
		if cell.ID == word || cell.HasTag(word) || strconv.Itoa(cell.Number) == word {
			return cell.Number, nil
		}
	}
	return 0, usage("--from %s: %s has no cell with that tag, id, number or name\nthe notebook's cells are %q", word, m.Notebook, m.StepNames())
}

// earlierRun is the run that --from-run names, or the notebook's last one.
func (o *submitOptions) earlierRun() (rundir.Dir, error) {
	if o.Run != "" {
		return rundir.Find(o.RunRoot, o.Run)
	}
	path, err := o.origin()
	if err != nil {
		return rundir.Dir{}, err
	}
	runs, err := rundir.List(o.RunRoot)
	if err != nil {
		return rundir.Dir{}, err
	}
	var last rundir.Dir
	var created time.Time // The names of runs tell seconds only.
	for _, dir := range runs {
		if m, err := rundir.ReadManifest(dir); err == nil && m.Notebook.Path == path && m.Created.After(created) {
			last, created = dir, m.Created
		}
	}
	if !created.IsZero() {
		return last, nil
	}
	return rundir.Dir{}, fmt.Errorf("--from %s: no run of %s is in %s; leave --from out, or name a run by --from-run", o.From, path, o.RunRoot)
}

// checkArgs refuses to reuse a program that would now run with other arguments.
func (r *reuse) checkArgs(spec submit.JobSpec) error {
	m, err := rundir.ReadManifest(r.dir)
	if err != nil {
		return err
	}
	for _, step := range spec.Steps {
		i := slices.IndexFunc(m.Steps, func(s rundir.Step) bool { return s.Name == step.Name })
		if i < 0 || !slices.Contains(r.steps, step.Name) || step.Shell {
			continue
		}
		if now := spec.StepArgs(step); !slices.Equal(m.Steps[i].Args, now) {
			return fmt.Errorf("cell %s of run %s had the arguments %q, and would now have %q; give the same ones after --, or run all cells",
				step.Name, r.dir.Name(), m.Steps[i].Args, now)
		}
	}
	return nil
}

// stage puts into a new run directory what its later steps may need of the steps that are reused.
func (r *reuse) stage(dir rundir.Dir, nb *nbformat.Notebook, plan executed.Plan) error {
	if err := r.earlier.Prepare(dir, nb, plan, r.before); err != nil {
		return err
	}
	for _, step := range r.steps {
		if err := rundir.MarkFinished(dir, step, 0); err != nil {
			return err
		}
		err := copyTree(r.dir.StepCheckpoints(step), dir.StepCheckpoints(step))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy the checkpoints of cell %s: %w", step, err)
		}
	}
	return r.stageKept(dir)
}

// stageKept gives a new run the values that %keep kept in the steps that are reused, as they were behind each of them.
func (r *reuse) stageKept(dir rundir.Dir) error {
	last := ""
	for _, step := range r.steps {
		err := linkFolder(r.dir.KeptAfter(step), dir.KeptAfter(step))
		if err == nil {
			last = step
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take the values kept in cell %s: %w", step, err)
		}
	}
	if last == "" {
		return nil
	}
	return linkFolder(r.dir.KeptAfter(last), dir.Kept())
}

// copyTree copies a folder that does not exist yet.
func copyTree(from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
