package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"gonbatch/internal/rundir"
)

// version is the version of all shapes. It changes if the meaning of a field changes, but not for a
// new field.
const version = 1

// Report is a command's report: as JSON for programs, as text for people.
type Report interface {
	// Text writes the report for people.
	Text(w io.Writer) error
}

// Write writes a report as text, or as JSON on one line that begins with the version.
func Write(w io.Writer, asJSON bool, r Report) error {
	var text bytes.Buffer
	if !asJSON {
		err := r.Text(&text)
		_, writeErr := io.WriteString(w, rundir.Printable(text.String())) // Another user may have written a part of it.
		return cmp.Or(err, writeErr)
	}
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `{"version":%d,%s`, version, text.Bytes()[len("{"):])
	return err
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

// dash returns the text of a column, "-" if it is empty.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
