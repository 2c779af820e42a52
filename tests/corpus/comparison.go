package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cellLimit is how long a cell may take if the rules don't say.
const cellLimit = 2 * time.Minute

// Comparison is the result of running one notebook on all sides.
type Comparison struct {
	Notebook string
	// Cells is the number of code cells; the others are the numbers of cells that are ok on each
	// side. A cell is ok in a job if its run finishes it.
	Cells, GoNB, Kernel, Check, Local int
	// Differences are the differences that no rule allows. Stale are the exceptions that allow
	// nothing.
	Differences []Difference
	Stale       []Exception
	// Statuses is how each cell ended in GoNB. Failed are the cells that failed there.
	Statuses Statuses
	Failed   []Cell
}

// comparing is the comparison of one notebook in progress.
type comparing struct {
	*Machine
	folder, name string
	rules        Rules
	gonbCells    cells
	checkOnly    bool
	result       Comparison
}

// Compare runs a notebook of a folder on all sides.
func (m *Machine) Compare(ctx context.Context, folder, name string, rules Rules) (Comparison, error) {
	c := m.comparing(folder, name, rules)
	for _, step := range []func(context.Context) error{c.runGoNB, c.runKernel, c.runJob} {
		if err := step(ctx); err != nil {
			return c.result, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c.result, nil
}

// Check runs submit check on a notebook, and compares with the recorded statuses of its cells in
// GoNB.
func (m *Machine) Check(ctx context.Context, folder, name string, rules Rules, recorded Statuses) (Comparison, error) {
	c := m.comparing(folder, name, rules)
	c.checkOnly, c.gonbCells = true, recorded.cells()
	c.result.Cells, c.result.GoNB = len(c.gonbCells), c.gonbCells.count()
	if err := c.runJob(ctx); err != nil {
		return c.result, fmt.Errorf("%s: %w", name, err)
	}
	return c.result, nil
}

func (m *Machine) comparing(folder, name string, rules Rules) *comparing {
	c := &comparing{Machine: m, folder: folder, name: name, rules: rules, result: Comparison{Notebook: name}}
	c.rules.Limit = cmp.Or(rules.Limit, cellLimit)
	if rules.Prepend != "" { // Exceptions do not count the prepended cell.
		c.rules.Exceptions = slices.Clone(rules.Exceptions)
		for i := range c.rules.Exceptions {
			c.rules.Exceptions[i].Cell++
		}
	}
	return c
}

// document returns the notebook as every side gets it.
func (c *comparing) document() (document, error) {
	d, err := readDocument(filepath.Join(c.folder, c.name))
	if err != nil {
		return nil, err
	}
	d.prepend(c.rules.Prepend)
	d.replace(c.rules.Replace)
	return d, nil
}

// in runs a function in a new workplace.
func (c *comparing) in(side string, d document, run func(workplace) error) error {
	w, err := c.prepare(c.folder, c.name, side, c.rules, d)
	if err != nil {
		return err
	}
	return errors.Join(run(w), w.clear())
}

func (c *comparing) runGoNB(ctx context.Context) error {
	d, err := c.document()
	if err != nil {
		return err
	}
	err = c.in("gonb", d, func(w workplace) (err error) {
		c.gonbCells, err = c.gonb(ctx, w, c.rules.Limit)
		return err
	})
	c.result.Cells, c.result.GoNB, c.result.Statuses = len(c.gonbCells), c.gonbCells.count(), c.gonbCells.statuses()
	for _, number := range slices.Sorted(maps.Keys(c.gonbCells)) {
		if cell := c.gonbCells[number]; cell.Status != OK {
			c.result.Failed = append(c.result.Failed, cell)
		}
	}
	return err
}

// count returns the number of cells that are ok.
func (seen cells) count() (n int) {
	for _, cell := range seen {
		if cell.Status == OK {
			n++
		}
	}
	return n
}

func (c *comparing) runKernel(ctx context.Context) error {
	d, err := c.document()
	if err != nil {
		return err
	}
	return c.in("kernel", d, func(w workplace) error {
		got, err := c.kernel(ctx, w, c.rules.Limit)
		c.result.Kernel = got.count()
		c.judge(differences("kernel", c.gonbCells, got, c.rules.Mask, nil), Kernel)
		return err
	})
}

// judge adds the differences that no exception allows, and the exceptions for a side that allow
// nothing.
func (c *comparing) judge(found []Difference, side Side) {
	used := map[int]bool{}
	for _, d := range found {
		i := slices.IndexFunc(c.rules.Exceptions, func(e Exception) bool { return e.is(c.name, d.Cell, side) && (d.Output || !e.Output) })
		if i < 0 {
			c.result.Differences = append(c.result.Differences, d)
		} else {
			used[i] = true
		}
	}
	for i, e := range c.rules.Exceptions {
		unknown := e.Sometimes || e.Output && side == Job && c.result.Local == 0 // Nothing ran.
		if e.is(c.name, e.Cell, side) && !used[i] && !unknown && !slices.Contains(c.result.Stale, e) {
			c.result.Stale = append(c.result.Stale, e)
		}
	}
}

// refused returns the cells of the notebook that a job is expected to reject.
func (c *comparing) refused() (numbers []int) {
	for _, e := range c.rules.Exceptions {
		if e.is(c.name, e.Cell, Job) && !e.Output {
			numbers = append(numbers, e.Cell)
		}
	}
	return numbers
}

// mayDiffer reports whether a cell may write something else in a job, or fail.
func (c *comparing) mayDiffer(number int) bool {
	return slices.ContainsFunc(c.rules.Exceptions, func(e Exception) bool { return e.Output && e.is(c.name, number, Job) })
}

// jobDocument returns the notebook as a job runs it. A cell that fails in GoNB may fail, or is left
// out if it doesn't compile. The cells in without are left out too.
func (c *comparing) jobDocument(without []int) (document, error) {
	d, err := c.document()
	if err != nil {
		return nil, err
	}
	for number, cell := range c.gonbCells {
		switch {
		case slices.Contains(without, number), cell.Status == Failed && cell.Code == 0, cell.Status == NotRun:
			d.tag(number, "notebook-only")
		case cell.Status == Failed, c.mayDiffer(number):
			d.tag(number, "raises-exception")
		}
	}
	return d, nil
}

// runJob checks the notebook, and runs it if the check succeeds. It leaves out cells that fail in
// GoNB and that a job rejects, as soon as it finds them.
func (c *comparing) runJob(ctx context.Context) error {
	refused := c.refused()
	found, err := c.checkRefused(ctx, refused)
	if err != nil {
		return err
	}
	leftOut := func(number int) bool { return slices.Contains(refused, number) }
	without := slices.Clone(refused)
	for again := true; again; {
		d, err := c.jobDocument(without)
		if err != nil {
			return err
		}
		err = c.in("job", d, func(w workplace) error {
			bad, differ, err := c.checkAndRun(ctx, w, without, leftOut)
			if without, again = append(without, bad...), len(bad) > 0; !again {
				c.judge(append(found, differ...), Job)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkAndRun runs the job in a workplace. It returns the cells to leave out, or the differences.
func (c *comparing) checkAndRun(ctx context.Context, w workplace, without []int, leftOut func(int) bool) (bad []int, differ []Difference, err error) {
	checked, message, err := c.check(ctx, w, c.gonbCells)
	if err != nil || strings.Contains(message, "no main cell") { // All cells that run are left out.
		return nil, nil, err
	}
	if bad = c.badInBoth(checked, without); len(bad) > 0 {
		return bad, nil, nil
	}
	c.result.Check = c.okIn(checked, leftOut)
	if c.checkOnly || checked.count() < len(checked) {
		return nil, differences("check", c.gonbCells, checked, nil, leftOut), nil
	}
	got, err := c.job(ctx, w, time.Duration(len(c.gonbCells)+1)*c.rules.Limit, c.gonbCells)
	c.result.Local = c.okIn(got, leftOut)
	return nil, differences("local", c.gonbCells, got, c.rules.Mask, leftOut), err
}

// badInBoth returns the cells that fail in GoNB and that a job rejects, except those that are
// already left out.
func (c *comparing) badInBoth(checked cells, without []int) (numbers []int) {
	for number, cell := range checked {
		if cell.Status != OK && c.gonbCells[number].Status != OK && !slices.Contains(without, number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// okIn counts the cells that are ok in GoNB and in a job.
func (c *comparing) okIn(seen cells, leftOut func(int) bool) (n int) {
	for number, cell := range seen {
		if cell.Status == OK && c.gonbCells[number].Status == OK && !leftOut(number) {
			n++
		}
	}
	return n
}

// checkRefused checks each cell that a job is expected to reject, in the notebook without the other
// such cells.
func (c *comparing) checkRefused(ctx context.Context, refused []int) (found []Difference, err error) {
	for _, number := range refused {
		others := slices.DeleteFunc(slices.Clone(refused), func(n int) bool { return n == number })
		d, err := c.jobDocument(others)
		if err != nil {
			return nil, err
		}
		err = c.in("check", d, func(w workplace) error {
			checked, message, err := c.check(ctx, w, c.gonbCells)
			if checked[number].Status != OK {
				found = append(found, Difference{Cell: number, Where: "check", What: Brief(message)})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
