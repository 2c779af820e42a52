package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gonbatch/data/files"
	"gonbatch/internal/plural"
)

// CSV opens CSV files (RFC 4180); see Open. The first line of each has the names of the columns,
// unless Config.Columns has them. Values may be in quotes, and then have commas and line ends;
// empty lines are skipped. A row with more or fewer values than there are columns is an error.
func CSV(pattern string, c Config) (*Table, error) { return Open(pattern, csvFormat{c}, c) }

type csvFormat struct{ config Config }

func (csvFormat) Name() string { return "csv 1" }

// Open reads the names of the columns.
func (f csvFormat) Open(file files.File) (Rows, error) {
	opened, err := file.Open()
	if err != nil {
		return nil, err
	}
	rows := &csvRows{file: opened}
	if err := rows.begin(f.config); err != nil {
		_ = opened.Close() // It was only read.
		return nil, err
	}
	return rows, nil
}

// mostRecord is the size of the longest row. A quote that isn't closed would fill the memory.
const mostRecord = 16 << 20

// csvRows are the rows of a CSV file.
type csvRows struct {
	file    *os.File
	reader  *csv.Reader
	columns []string
	bytes   int64 // That were read from the file.
	begun   int64 // Where the row begins.
}

var errLong = fmt.Errorf("a row has more than %d MB: a quote is probably not closed", mostRecord>>20)

// refill reads from the file, unless a row is too long.
func (r *csvRows) refill(p []byte) (int, error) {
	if r.bytes-r.begun > mostRecord {
		return 0, errLong
	}
	n, err := r.file.Read(p)
	r.bytes += int64(n)
	return n, err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// begin reads the names of the columns.
func (r *csvRows) begin(c Config) error {
	buffered := bufio.NewReaderSize(readerFunc(r.refill), 256<<10)
	if err := skipMark(buffered); err != nil {
		return err
	}
	r.reader = csv.NewReader(buffered)
	r.reader.ReuseRecord = true
	if c.Comma != 0 {
		r.reader.Comma = c.Comma
	}
	if r.columns = c.Columns; len(r.columns) > 0 {
		r.reader.FieldsPerRecord = len(r.columns)
		return nil
	}
	names, err := r.reader.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty: its first line must have the names of the columns")
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		r.columns = append(r.columns, strings.TrimSpace(name))
	}
	return nil
}

// skipMark skips the mark with which Windows begins text in UTF-8, and refuses other encodings.
func skipMark(r *bufio.Reader) error {
	begin, err := r.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.Equal(begin, []byte("\xef\xbb\xbf")):
		_, err := r.Discard(3)
		return err
	case bytes.HasPrefix(begin, []byte("\xff\xfe")), bytes.HasPrefix(begin, []byte("\xfe\xff")):
		return errors.New("it is in UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		return errors.New("it is compressed by gzip: unpack it with gunzip")
	}
	return nil
}

// Columns implements Rows.
func (r *csvRows) Columns() []string { return r.columns }

// Close implements Rows.
func (r *csvRows) Close() error { return r.file.Close() }

// Read implements Rows.
func (r *csvRows) Read(columns []int, row func(cells []Cell) error) error {
	cells := make([]Cell, len(columns))
	for {
		r.begun = r.reader.InputOffset()
		record, err := r.reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, csv.ErrFieldCount):
			line, _ := r.reader.FieldPos(0)
			return fmt.Errorf("line %d: it has %s for %s", line, plural.Of(len(record), "value"), plural.Of(len(r.columns), "column"))
		case err != nil:
			return err
		}
		for i, column := range columns {
			cells[i].Text = strings.TrimSpace(record[column])
		}
		if err := row(cells); err != nil {
			line, _ := r.reader.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}
