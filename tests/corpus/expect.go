package corpus

import (
	"fmt"
	"maps"
	"slices"
)

// expected returns what submit should do: what GoNB does, with the deviations. A deviation that
// changes nothing is an error.
func (c Case) expected(gonb Observed) (Observed, error) {
	want := Observed{Cells: slices.Clone(gonb.Cells), Files: maps.Clone(gonb.Files)}
	for i := range want.Cells {
		want.Cells[i].Error = ""
	}
	for _, d := range c.Deviations {
		i := slices.IndexFunc(want.Cells, func(cell Cell) bool { return cell.Number == d.Cell })
		if i < 0 {
			i = len(want.Cells)
			want.Cells = append(want.Cells, Cell{Number: d.Cell, Status: NotRun}) // GoNB ignores raw cells.
		}
		before, files := want.Cells[i], maps.Clone(want.Files)
		d.apply(&want, &want.Cells[i])
		if before == want.Cells[i] && maps.Equal(files, want.Files) {
			return want, fmt.Errorf("cell %d: the deviation (%s) changes nothing: GoNB does the same; remove it from the notebook's metadata", d.Cell, d.Reason)
		}
	}
	slices.SortFunc(want.Cells, func(a, b Cell) int { return a.Number - b.Number })
	return want, nil
}

// apply changes what GoNB does into what submit does. A cell that succeeds has no exit code.
func (d Deviation) apply(o *Observed, cell *Cell) {
	set(&cell.Status, d.Status)
	if d.Status != nil && *d.Status != Failed {
		cell.Code, cell.Stderr = 0, ""
	}
	set(&cell.Code, d.Code)
	set(&cell.Stdout, d.Stdout)
	set(&cell.Stderr, d.Stderr)
	for name, text := range d.Files {
		if o.Files == nil {
			o.Files = map[string]string{}
		}
		o.Files[name] = text
		if text == "" {
			delete(o.Files, name)
		}
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
