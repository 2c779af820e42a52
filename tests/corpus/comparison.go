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

// cellLimit is the time that a cell may take if the rules don't say.
const cellLimit = 2 * time.Minute

// Comparison is what the sides make of one notebook.
type Comparison struct {
	Notebook string
	// Cells is how many code cells there are, and the others how many of them are ok there. A cell
	// is ok in a job if its run goes through it.
	Cells, GoNB, Kernel, Check, Local int
	// Differences are those that no rule allows, and Stale the exceptions that are none.
	Differences []Difference
	Stale       []Exception
	// Statuses is how each cell ended in GoNB, and Failed are those that failed there.
	Statuses Statuses
	Failed   []Cell
}

// comparing is the comparison of one notebook.
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

// Check runs submit check on a notebook whose cells ended in GoNB as recorded.
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
	if rules.Prepend != "" { // Exceptions count without it.
		c.rules.Exceptions = slices.Clone(rules.Exceptions)
		for i := range c.rules.Exceptions {
			c.rules.Exceptions[i].Cell++
		}
	}
	return c
}

// document is the notebook as every side gets it.
func (c *comparing) document() (document, error) {
	d, err := readDocument(filepath.Join(c.folder, c.name))
	if err != nil {
		return nil, err
	}
	d.prepend(c.rules.Prepend)
	d.replace(c.rules.Replace)
	return d, nil
}

// in runs something in a workplace of its own.
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

// count is how many cells are ok.
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
// none.
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

// refused are the cells of the notebook that a job is not expected to accept.
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

// jobDocument is the notebook as a job runs it: a cell that fails in GoNB may fail, or is left out
// if it doesn't compile, and so are some others.
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

// runJob checks the notebook, and runs it if that succeeds. Cells that fail in GoNB and that a job
// refuses are left out as soon as they are known.
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

// checkAndRun runs the job in a workplace. It returns the cells that are to be left out, or the
// differences.
func (c *comparing) checkAndRun(ctx context.Context, w workplace, without []int, leftOut func(int) bool) (bad []int, differ []Difference, err error) {
	checked, message, err := c.check(ctx, w, c.gonbCells)
	if err != nil || strings.Contains(message, "no main cell") { // All that run are left out.
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

// badInBoth are the cells that fail in GoNB and that a job refuses, without those that are left out
// already.
func (c *comparing) badInBoth(checked cells, without []int) (numbers []int) {
	for number, cell := range checked {
		if cell.Status != OK && c.gonbCells[number].Status != OK && !slices.Contains(without, number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// okIn counts the cells of GoNB that are ok in a job too.
func (c *comparing) okIn(seen cells, leftOut func(int) bool) (n int) {
	for number, cell := range seen {
		if cell.Status == OK && c.gonbCells[number].Status == OK && !leftOut(number) {
			n++
		}
	}
	return n
}

// checkRefused checks each cell that a job is not expected to accept: the notebook without all
// others of them.
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
