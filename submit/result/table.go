package result

import (
	"fmt"
	"html"
	"strings"
	"text/tabwriter"

	"gonbatch/kernel/display"
)

// Table compares training runs. It prints as text, and the kernel shows it as a table.
type Table struct {
	// Columns are the run, its training run if a run has several, what differs between the rows,
	// and the metrics: see Compare.
	Columns []string
	// Rows have a cell for each column; "" where a run lacks it.
	Rows [][]string
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

// oneLine makes a cell fit in a line of text. The tabwriter would end the cell at these.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "\v", " ", "\f", " ")

// String returns the table as text, with aligned columns.
func (t Table) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = oneLine.Replace(cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
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
