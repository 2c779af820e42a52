package logger

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// CSV appends metrics to a file of comma-separated values. Its columns are step, time (RFC 3339),
// training if it has a name, and one for each metric; the first row names them. Each call of
// Scalars writes a row, in which a missing metric is an empty cell.
//
// A new metric adds a column on the right. The whole file is then rewritten, with empty cells in
// the earlier rows, so it is always one table. That costs a copy of the file for each new set of
// names, and nothing afterwards. CSV ignores everything except scalars.
type CSV struct {
	metricsFile
	columns []string
}

var (
	_ Logger   = (*CSV)(nil)
	_ Rewinder = (*CSV)(nil)
)

// fixed returns the first columns.
func (l *CSV) fixed() []string {
	if l.options.training != "" {
		return []string{"step", "time", "training"}
	}
	return []string{"step", "time"}
}

// NewCSV opens the file at path, and creates it if it is missing. It refuses a file whose
// header row this logger did not write.
func NewCSV(path string, options ...Option) (*CSV, error) {
	l := &CSV{}
	if err := l.open(path, options); err != nil {
		return nil, fmt.Errorf("logger: CSV: %w", err)
	}
	rows, err := l.rows()
	if err == nil && len(rows) > 0 {
		l.columns, err = l.checked(rows[0])
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("logger: CSV: %s: %w", path, err), l.Close())
	}
	return l, nil
}

// checked returns the columns in a file's first row, or an error if this logger did not write it.
func (l *CSV) checked(row []string) ([]string, error) {
	fixed := l.fixed()
	if len(row) < len(fixed) || !slices.Equal(row[:len(fixed)], fixed) {
		return nil, fmt.Errorf("its first row is %q, which doesn't begin with %s: it is another program's file, choose a new name", row, strings.Join(fixed, ","))
	}
	return row, nil
}

// Scalars appends a row.
func (l *CSV) Scalars(step int64, values map[string]float64) error {
	return l.add(step, values, l.append)
}

func (l *CSV) append(step int64, values map[string]float64) error {
	if err := l.widen(values); err != nil {
		return err
	}
	row := []string{strconv.FormatInt(step, 10), l.time(), l.options.training}[:len(l.fixed())]
	for _, name := range l.columns[len(l.fixed()):] {
		cell := ""
		if value, ok := values[name]; ok {
			cell = strconv.FormatFloat(value, 'g', -1, 64)
		}
		row = append(row, cell)
	}
	text, err := csvText([][]string{row})
	if err != nil {
		return err
	}
	return writeWhole(l.file, text)
}

// widen adds a column for each new metric.
func (l *CSV) widen(values map[string]float64) error {
	columns := slices.Clone(l.columns)
	if len(columns) == 0 {
		columns = l.fixed()
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	if len(columns) == len(l.columns) {
		return nil
	}
	rows, err := l.rows()
	if err != nil {
		return err
	}
	if err := l.rewrite(columns, rows); err != nil {
		return err
	}
	l.columns = columns
	return nil
}

// rewrite replaces the file with one that has the columns and the rows of the old one.
func (l *CSV) rewrite(columns []string, rows [][]string) error {
	table := [][]string{columns}
	for _, row := range rows[min(1, len(rows)):] {
		table = append(table, append(row, make([]string, len(columns)-len(row))...))
	}
	text, err := csvText(table)
	if err != nil {
		return err
	}
	return l.replace(text)
}

// Rewind removes the training's rows of later steps.
func (l *CSV) Rewind(step int64) error { return l.goBack(step, l.rewind) }

func (l *CSV) rewind(step int64) error {
	rows, err := l.rows()
	if err != nil || len(rows) == 0 {
		return err
	}
	l.kept = recorded{}
	left := rows[:1:1]
	for _, row := range rows[1:] {
		if l.keeps(row, step) {
			left = append(left, row)
		}
	}
	if len(left) == len(rows) {
		return nil
	}
	return l.rewrite(l.columns, left)
}

// keeps reports whether a row stays, and records its metrics.
func (l *CSV) keeps(row []string, step int64) bool {
	at, err := strconv.ParseInt(row[0], 10, 64)
	if err != nil || l.options.training != "" && row[2] != l.options.training {
		return true
	}
	if at > step {
		return false
	}
	for i := len(l.fixed()); i < len(row); i++ {
		if row[i] != "" {
			l.kept.note(l.columns[i], at)
		}
	}
	return true
}

func (l *CSV) rows() ([][]string, error) {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	return csv.NewReader(bytes.NewReader(text)).ReadAll()
}

func csvText(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	err := w.WriteAll(rows)
	return b.Bytes(), err
}
