package magic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
)

// arranged puts the cells of a session in the order in which a job has them: the order in the saved
// notebook, which the user sees, if it has all of them, and otherwise the order in which they ran.
// doubts says where the session differs from its notebook.
func arranged(cells []Cell) (ordered []Cell, doubts []string) {
	if slices.ContainsFunc(cells, func(c Cell) bool { return !c.placed }) {
		return asRun(cells), nil
	}
	ordered = slices.Clone(cells)
	slices.SortStableFunc(ordered, func(a, b Cell) int { return cmp.Compare(a.number, b.number) })
	return ordered, redeclared(ordered)
}

// asRun orders cells by their last run. But a cell that declares something stays above the main
// cells that ran after its first run, because they need it.
func asRun(cells []Cell) (ordered []Cell) {
	byRun := slices.Clone(cells)
	slices.SortStableFunc(byRun, func(a, b Cell) int { return cmp.Compare(a.Last, b.Last) })
	mains := map[int]bool{}
	for _, c := range byRun {
		f := gocell.Parse(c.Source).File()
		at := slices.IndexFunc(ordered, func(o Cell) bool { return mains[o.Last] && o.Last > c.First })
		if at < 0 || len(declared(c)) == 0 {
			at = len(ordered)
		}
		ordered, mains[c.Last] = slices.Insert(ordered, at, c), f.HasMain()
	}
	return ordered
}

// redeclared reports declarations that several cells make, if the lowest of these cells is not the
// one that ran last, and those that a cell below removes.
func redeclared(ordered []Cell) (doubts []string) {
	winners := map[string]Cell{}
	for _, c := range ordered {
		doubts = append(doubts, removed(winners, c)...)
		for _, key := range declared(c) {
			before, taken := winners[key]
			winners[key] = c
			if taken && before.Last > c.Last {
				doubts = append(doubts, fmt.Sprintf("cells %s and %s both declare %s: the job uses cell %s, which comes later, "+
					"but the session uses cell %s, which ran later: run cell %s again, or remove one of them",
					before.label(), c.label(), strings.ReplaceAll(key, "~", "."), c.label(), before.label(), c.label()))
			}
		}
	}
	return doubts
}

// removed reports the declarations of the cells above that a cell removes, although they were run
// again later. It forgets what the cell removes.
func removed(winners map[string]Cell, c Cell) (doubts []string) {
	for _, key := range slices.Sorted(maps.Keys(winners)) {
		call, ok := gocell.Forgetting(c.Source, key)
		if !ok {
			continue
		}
		if before := winners[key]; before.Last > c.Last {
			doubts = append(doubts, fmt.Sprintf("cell %s declares %s, and ran after cell %s, which is below it and removes it (%s): the job doesn't have it, but the session does: "+
				"delete that line, or move it above cell %s", before.label(), strings.ReplaceAll(key, "~", "."), c.label(), call.Name(), before.label()))
		}
		delete(winners, key)
	}
	return doubts
}

// declared returns the keys of a cell's declarations, without its main and init functions.
func declared(c Cell) []string {
	return slices.DeleteFunc(gocell.Parse(c.Source).Declared(), func(key string) bool {
		name, _, _ := strings.Cut(key, "~")
		return name == "main" || name == "init"
	})
}

// label returns the cell's number in the notebook; or [n], its execution count, if it is not in the
// notebook.
func (c Cell) label() string {
	if c.number > 0 {
		return strconv.Itoa(c.number)
	}
	return fmt.Sprintf("[%d]", c.Last)
}
