package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Version is that of all shapes: what the field "version" has. A new field leaves it as it is; a
// field with another meaning does not.
const Version = 1

// Report is what a command reports: as JSON for programs, as text for people.
type Report interface {
	// Text writes the report for people.
	Text(w io.Writer) error
}

// Write writes a report as JSON, on one line, or as text.
func Write(w io.Writer, asJSON bool, r Report) error {
	if !asJSON {
		return r.Text(w)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// Count is a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// table writes rows below a title, in columns.
func table(w io.Writer, title string, rows [][]string) error {
	if _, err := fmt.Fprintf(w, "%s:\n", title); err != nil {
		return err
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.Join(strings.Fields(cell), " ")
		}
		fmt.Fprintf(columns, "  %s\n", strings.Join(row, "\t"))
	}
	return columns.Flush()
}

// dash stands in an empty column.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
