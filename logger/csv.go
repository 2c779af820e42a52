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
	"sync"
	"time"

	"gonbatch/rundir"
)

// CSV appends metrics to a file of comma-separated values: the columns step and time (RFC 3339), then one a metric. Each call of
// Scalars is a row; a metric that it lacks is an empty cell. The first row names the columns.
//
// A metric that comes later gets a further column at the right: the file is written anew, whole, with empty cells in the rows before, so
// it always is one table. That costs a copy of the file for each new set of names, and nothing after. It ignores all but scalars.
type CSV struct {
	scalarsOnly
	mu      sync.Mutex
	path    string
	file    *os.File // nil once closed
	columns []string
	now     func() time.Time
}

var _ Logger = (*CSV)(nil)

var csvFixed = []string{"step", "time"}

// NewCSV opens the file at path and makes it if it is missing. A file whose first row is not one of CSV's is refused.
func NewCSV(path string) (*CSV, error) {
	f, err := openLines(path)
	if err != nil {
		return nil, fmt.Errorf("logger: CSV: %w", err)
	}
	l := &CSV{path: path, file: f, now: time.Now}
	rows, err := l.rows()
	if err == nil && len(rows) > 0 {
		l.columns, err = csvColumns(rows[0])
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("logger: CSV: %s: %w", path, err), f.Close())
	}
	return l, nil
}

// csvColumns are the columns that a file's first row names.
func csvColumns(row []string) ([]string, error) {
	if len(row) < len(csvFixed) || !slices.Equal(row[:len(csvFixed)], csvFixed) {
		return nil, fmt.Errorf("its first row is %q, which doesn't begin with step,time: it is another program's file, choose a new name", row)
	}
	return row, nil
}

// Scalars appends a row.
func (l *CSV) Scalars(step int64, values map[string]float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := ErrClosed
	if l.file != nil {
		err = l.append(step, values)
	}
	if err != nil {
		return fmt.Errorf("logger: record metrics in %s: %w", l.path, err)
	}
	return nil
}

func (l *CSV) append(step int64, values map[string]float64) error {
	for _, fixed := range csvFixed {
		if _, taken := values[fixed]; taken {
			return fmt.Errorf("a metric is named %q, as a column of the file is: rename it", fixed)
		}
	}
	if err := l.widen(values); err != nil {
		return err
	}
	row := []string{strconv.FormatInt(step, 10), l.now().UTC().Format(time.RFC3339Nano)}
	for _, name := range l.columns[len(csvFixed):] {
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
	_, err = l.file.Write(text)
	return err
}

// widen gives each new metric a column.
func (l *CSV) widen(values map[string]float64) error {
	columns := slices.Clone(l.columns)
	if len(columns) == 0 {
		columns = slices.Clone(csvFixed)
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

// rewrite replaces the file by one with the columns and the rows of the old one.
func (l *CSV) rewrite(columns []string, rows [][]string) error {
	table := [][]string{columns}
	for _, row := range rows[min(1, len(rows)):] {
		table = append(table, append(row, make([]string, len(columns)-len(row))...))
	}
	text, err := csvText(table)
	if err != nil {
		return err
	}
	if err := rundir.WriteFileAtomic(l.path, text, 0o644); err != nil {
		return err
	}
	f, err := openLines(l.path)
	if err != nil {
		return err
	}
	old := l.file
	l.file = f
	return old.Close()
}

func (l *CSV) rows() ([][]string, error) {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	return csv.NewReader(bytes.NewReader(text)).ReadAll()
}

// Close closes the file.
func (l *CSV) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return f.Close()
}

func csvText(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	err := w.WriteAll(rows)
	return b.Bytes(), err
}
