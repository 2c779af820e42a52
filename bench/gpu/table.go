package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// row is a check's result.
type row struct {
	name, result, figures string
	took                  time.Duration
}

// skipped is why a check can't run here.
type skipped string

func (s skipped) Error() string { return string(s) }

// table is of Markdown.
type table struct {
	title string
	rows  []row
}

func (t *table) add(r row) { t.rows = append(t.rows, r) }

// String is the table as text.
func (t table) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n\n", t.title)
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| check\t| result\t| figures\t| seconds\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|--:\t|")
	for _, r := range t.rows {
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %.0f\t|\n", r.name, r.result, short(strings.ReplaceAll(r.figures, "\n", "; ")), r.took.Seconds())
	}
	_ = w.Flush() // A strings.Builder takes everything.
	return text.String()
}
