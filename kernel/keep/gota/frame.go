package gota

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"

	"gonbatch/kernel/keep"
)

func init() {
	keep.Register(saveFrame, loadFrame)
	keep.Register(saveSeries, loadSeries)
	keep.Register(
		func(w io.Writer, df *dataframe.DataFrame) error { return saveFrame(w, *df) },
		func(r io.Reader, size int64) (*dataframe.DataFrame, error) { return pointer(loadFrame(r, size)) })
	keep.Register(
		func(w io.Writer, s *series.Series) error { return saveSeries(w, *s) },
		func(r io.Reader, size int64) (*series.Series, error) { return pointer(loadSeries(r, size)) })
}

func pointer[T any](value T, err error) (*T, error) { return &value, err }

// frame is the saved form of a data frame.
type frame struct {
	Columns []column
	Err     string
}

func saveFrame(w io.Writer, df dataframe.DataFrame) error {
	f := frame{Err: message(df.Err)}
	for i, name := range df.Names() { // Two columns may have one name.
		alone := df.Select(i)
		c, err := columnOf(alone.Col(alone.Names()[0]))
		if err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
		c.Name = name
		f.Columns = append(f.Columns, c)
	}
	return gob.NewEncoder(w).Encode(f)
}

func loadFrame(r io.Reader, _ int64) (dataframe.DataFrame, error) {
	var f frame
	if err := decode(r, &f); err != nil || len(f.Columns) == 0 {
		return dataframe.DataFrame{Err: failure(f.Err)}, err
	}
	columns, names := make([]series.Series, len(f.Columns)), make([]string, len(f.Columns))
	for i, c := range f.Columns {
		columns[i], names[i] = c.series(), c.Name
	}
	df := dataframe.New(columns...)
	if df.Err != nil {
		return df, df.Err
	}
	err := df.SetNames(names...)
	df.Err = failure(f.Err)
	return df, err
}

func saveSeries(w io.Writer, s series.Series) error {
	c, err := columnOf(s)
	if err != nil {
		return err
	}
	return gob.NewEncoder(w).Encode(c)
}

func loadSeries(r io.Reader, _ int64) (series.Series, error) {
	var c column
	err := decode(r, &c)
	return c.series(), err
}

func decode(r io.Reader, value any) error {
	return gob.NewDecoder(bufio.NewReaderSize(r, 1<<20)).Decode(value)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func failure(message string) error {
	if message == "" {
		return nil
	}
	return errors.New(message)
}
