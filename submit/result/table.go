package result

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gonbatch/kernel/display"
)

// Table compares runs. It prints as text, and the kernel shows it as a table.
type Table struct {
	// Columns are the run, its training run if it has several, the flags that differ between the
	// runs, and the metrics.
	Columns []string
	// Rows have a cell for each column; "" where a run lacks it.
	Rows [][]string
}

// Compare returns a table with a row for each training run of the runs: the flags of their programs
// that differ between the runs, and the newest values of their metrics. Of the metrics of training,
// it has only the losses.
//
//	result.Compare(result.Find("runs/mnist-*")...)
func Compare(runs ...Run) Table {
	flags, metrics, several := differing(runs), map[string]bool{}, false
	var rows []map[string]string
	for _, r := range runs {
		trainings := r.apart()
		several = several || len(trainings) > 1
		for _, one := range trainings {
			row := one.row(flags)
			for name, value := range one.compared() {
				metrics[name], row[name] = true, value
			}
			rows = append(rows, row)
		}
	}
	columns := []string{"run"}
	if several {
		columns = append(columns, "training")
	}
	for _, name := range flags {
		columns = append(columns, "-"+name)
	}
	return newTable(append(columns, slices.Sorted(maps.Keys(metrics))...), rows)
}

func newTable(columns []string, rows []map[string]string) Table {
	t := Table{Columns: columns}
	for _, row := range rows {
		var cells []string
		for _, column := range columns {
			cells = append(cells, row[column])
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// row has the cells that aren't metrics.
func (r Run) row(flags []string) map[string]string {
	row := map[string]string{"run": r.Name(), "training": r.training}
	for _, name := range flags {
		row["-"+name] = r.flags()[name]
	}
	return row
}

// compared returns the newest values of the metrics that a table has.
func (r Run) compared() map[string]string {
	values := map[string]string{}
	for name, value := range r.Latest() {
		if strings.Contains(name, "/") && (!strings.HasPrefix(name, "train/") || strings.HasSuffix(name, "loss")) {
			values[name] = strconv.FormatFloat(value, 'g', 6, 64)
		}
	}
	return values
}

// apart returns the run once for each of its training runs.
func (r Run) apart() (all []Run) {
	for _, name := range r.Trainings() {
		all = append(all, r.Training(name))
	}
	if len(all) == 0 {
		return []Run{r}
	}
	return all
}

// flags returns the flags with which the run's programs were started.
func (r Run) flags() map[string]string { return r.Manifest().Flags }

// differing returns the flags that don't have the same value in all runs.
func differing(runs []Run) (names []string) {
	for _, r := range runs {
		for name, value := range r.flags() {
			same := func(other Run) bool { theirs, ok := other.flags()[name]; return ok && theirs == value }
			if !slices.Contains(names, name) && slices.ContainsFunc(runs, func(other Run) bool { return !same(other) }) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// String returns the table as text, with aligned columns.
func (t Table) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // A strings.Builder takes everything.
	return text.String()
}

// Bundle implements display.Bundler.
func (t Table) Bundle() display.Bundle {
	var table strings.Builder
	row := func(tag string, cells []string) {
		table.WriteString("<tr>")
		for _, cell := range cells {
			fmt.Fprintf(&table, `<%s style="text-align:left">%s</%[1]s>`, tag, html.EscapeString(cell))
		}
		table.WriteString("</tr>")
	}
	row("th", t.Columns)
	for _, cells := range t.Rows {
		row("td", cells)
	}
	return display.Bundle{display.Text: t.String(), display.HTML: "<table>" + table.String() + "</table>"}
}
