package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/export"
	"gonbatch/submit/store"
)

// Reuse is the part of an earlier run that a new one reuses.
type Reuse struct {
	dir     rundir.Dir
	earlier *executed.Earlier
	// before is the number of the first cell that runs, and cells are the names of the reused
	// cells.
	before int
	cells  []string
	// was has the names of these cells in the earlier run.
	was map[string]string
}

// FindReuse finds the part of an earlier run in root that --from reuses: of the notebook's last run
// that has run these cells, unless runName names another. It refuses cells that have changed since.
func FindReuse(n Notebook, m *export.Module, spec submit.JobSpec, root, from, runName string) (*Reuse, error) {
	nb, err := n.File.Parse()
	if err != nil {
		return nil, err
	}
	r := &Reuse{}
	if r.before, err = fromCell(from, nb, m); err != nil {
		return nil, err
	}
	for _, cell := range m.Cells {
		if cell.Number < r.before {
			r.cells = append(r.cells, cell.Name)
		}
	}
	if len(r.cells) == 0 {
		return nil, submit.Usagef("--from %s: nothing runs before that cell; leave --from out", from)
	}
	if runName != "" {
		if r.dir, err = rundir.Find(root, runName); err == nil {
			err = r.dir.CheckOwner()
		}
	} else {
		r.dir, err = n.lastRun(root, from, r.cells)
	}
	if err != nil {
		return nil, err
	}
	if err := r.check(n, m, nb, spec); err != nil {
		return nil, fmt.Errorf("--from %s: %w", from, err)
	}
	return r, nil
}

// check refuses to reuse cells that would now run differently.
func (r *Reuse) check(n Notebook, m *export.Module, nb *nbformat.Notebook, spec submit.JobSpec) (err error) {
	if r.earlier, err = executed.ReadEarlier(r.dir); err != nil {
		return err
	}
	plan, err := n.plan(m, nb)
	if err != nil {
		return err
	}
	if err := r.earlier.Check(nb, plan, r.before); err != nil {
		return err
	}
	r.was = r.earlier.Names(nb, plan, r.before)
	return errors.Join(r.checkPrograms(m, spec), r.checkArgs(spec))
}

// run returns the name of the reused run; "" if there is none.
func (r *Reuse) run() string {
	if r == nil {
		return ""
	}
	return r.dir.Name()
}

// fromCell returns the number of the cell that word names.
func fromCell(word string, nb *nbformat.Notebook, m *export.Module) (int, error) {
	for _, cell := range m.Cells {
		if cell.Name == word {
			return cell.Number, nil
		}
	}
	for _, cell := range nb.Cells {
		if cell.ID == word || cell.HasTag(word) || cell.Label() == word {
			return cell.Number, nil
		}
	}
	return 0, submit.Usagef("--from %s: %s has no cell with that tag, id, number or name\nthe notebook's cells are %s", word, m.Notebook, strings.Join(m.CellNames(), ", "))
}

// lastRun returns the notebook's last run in root that has all these cells; if there is none, its
// last run.
func (n Notebook) lastRun(root, from string, cells []string) (rundir.Dir, error) {
	path, err := n.origin()
	if err != nil {
		return rundir.Dir{}, err
	}
	runs, err := rundir.List(root)
	if err != nil {
		return rundir.Dir{}, err
	}
	var last candidate
	for _, dir := range runs {
		m, err := rundir.ReadManifest(dir)
		if err != nil || m.Notebook.Path != path || m.Part {
			continue
		}
		if run := (candidate{dir, m.Created, hasCells(m, cells)}); run.better(last) {
			last = run
		}
	}
	if !last.created.IsZero() {
		return last.dir, nil
	}
	return rundir.Dir{}, fmt.Errorf("--from %s: no run of %s is in %s; leave --from out, or name a run with --from-run", from, path, root)
}

// candidate is a run whose cells may be reused.
type candidate struct {
	dir rundir.Dir
	// created is the time; the names of runs have only seconds.
	created time.Time
	// whole is set if the run has all the cells that are needed.
	whole bool
}

// better reports whether a run should be reused rather than another.
func (c candidate) better(other candidate) bool {
	if c.whole != other.whole {
		return c.whole
	}
	return c.created.After(other.created)
}

// hasCells reports whether a run has cells with these names.
func hasCells(m rundir.Manifest, names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(m.Cells, func(c rundir.Cell) bool { return c.Name == name }) {
			return false
		}
	}
	return true
}

// checkArgs refuses to reuse a program that would now run with other arguments.
func (r *Reuse) checkArgs(spec submit.JobSpec) error {
	m, err := rundir.ReadManifest(r.dir)
	if err != nil {
		return err
	}
	for _, cell := range spec.Cells {
		i := slices.IndexFunc(m.Cells, func(s rundir.Cell) bool { return s.Name == r.was[cell.Name] })
		if i < 0 || !cell.TakesArgs() {
			continue
		}
		if now := spec.CellArgs(cell); !slices.Equal(m.Cells[i].Args, now) {
			return fmt.Errorf("cell %s of run %s had %s, and would now have %s; give the same after --, or run all cells",
				cell.Name, r.dir.Name(), arguments(m.Cells[i].Args), arguments(now))
		}
	}
	return nil
}

// arguments returns arguments as they are typed.
func arguments(args []string) string {
	if len(args) == 0 {
		return "no arguments"
	}
	return "the arguments " + shellescape.QuoteCommand(args)
}

// stage puts the results of the reused cells that later cells may need into a new run directory.
func (r *Reuse) stage(dir rundir.Dir, nb *nbformat.Notebook, plan executed.Plan) error {
	if err := r.earlier.Prepare(dir, nb, plan, r.before); err != nil {
		return err
	}
	for _, cell := range r.cells {
		if err := rundir.MarkFinished(dir, cell, 0); err != nil {
			return err
		}
		err := copyTree(r.dir.CellCheckpoints(r.was[cell]), dir.CellCheckpoints(cell))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("copy the checkpoints of cell %s: %w", cell, err)
		}
	}
	return r.stageKept(dir)
}

// stageKept gives a new run the values that %keep kept after each of the reused cells.
func (r *Reuse) stageKept(dir rundir.Dir) error {
	for _, cell := range r.cells {
		err := store.LinkFolder(r.dir.KeptAfter(r.was[cell]), dir.KeptAfter(cell))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take the values kept in cell %s: %w", cell, err)
		}
	}
	return nil
}

// copyTree copies a folder to a path that does not exist yet.
func copyTree(from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
