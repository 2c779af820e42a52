package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Comparison is a table of runs, with a cell for each column in each row.
type Comparison struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Text writes the table with aligned columns.
func (c Comparison) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{c.Columns}, c.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = dash(strings.Join(strings.Fields(cell), " "))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// CSV is a comparison whose text is CSV (RFC 4180).
type CSV struct{ Comparison }

// Text writes the table as CSV.
func (c CSV) Text(w io.Writer) error {
	return csv.NewWriter(w).WriteAll(append([][]string{c.Columns}, c.Rows...))
}
