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

	"gonbatch/data"
	"gonbatch/data/compressed"
	"gonbatch/data/files"
	"gonbatch/internal/plural"
)

// CSV opens CSV files (RFC 4180); see Open. The first line of each has the names of the columns,
// unless Config.Columns has them. Values may be in quotes, and then have commas and line ends;
// empty lines are skipped. A row with more or fewer values than there are columns is an error. The
// files may be compressed by gzip or zstd, whatever their names.
func CSV(pattern string, c Config) (*Table, error) { return Open(pattern, csvFormat{c}, c) }

// StreamCSV returns a stream of the rows of CSV files; see CSV and Stream.
func StreamCSV(pattern string, c Config) (data.Stream, error) {
	return Stream(pattern, csvFormat{c}, c)
}

type csvFormat struct{ config Config }

func (csvFormat) Name() string { return "csv 1" }

// Open reads the names of the columns.
func (f csvFormat) Open(file files.File) (Rows, error) {
	opened, err := file.Open()
	if err != nil {
		return nil, err
	}
	content, err := compressed.NewReader(opened, file.Size)
	if err != nil {
		_ = opened.Close() // It was only read.
		return nil, err
	}
	rows := &csvRows{file: opened, content: content}
	if err := rows.begin(f.config); err != nil {
		_ = rows.Close() // The file was only read.
		return nil, err
	}
	return rows, nil
}

// mostRecord is the size of the longest row. A quote that isn't closed would fill the memory.
const mostRecord = 16 << 20

// csvRows are the rows of a CSV file.
type csvRows struct {
	file    *os.File
	content io.ReadCloser // Decompressed.
	reader  *csv.Reader
	columns []string
	line    int   // Where the newest row begins; 0 before the first one.
	bytes   int64 // That were read from the content.
	begun   int64 // Where the row begins, in bytes.
}

var errLong = fmt.Errorf("a row has more than %d MB: a quote is probably not closed", mostRecord>>20)

// refill reads from the content, unless a row is too long.
func (r *csvRows) refill(p []byte) (int, error) {
	if r.bytes-r.begun > mostRecord {
		return 0, errLong
	}
	n, err := r.content.Read(p)
	r.bytes += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = compressed.Explain(err)
	}
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
	if begin, _ := buffered.Peek(buffered.Size()); endsWithCR(begin) { // Reading tells of errors.
		return errors.New("its lines end with CR only, as on old Macs: convert it (tr '\\r' '\\n')")
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
	names, err := r.next()
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

// endsWithCR reports whether the lines at the beginning of a file end with CR alone. One in quotes
// is a part of a value, and one at the end may have its LF behind it.
func endsWithCR(begin []byte) bool {
	quoted := false
	for i, c := range begin {
		switch {
		case c == '\n':
			return false
		case c == '"':
			quoted = !quoted
		case c == '\r' && !quoted && i+1 < len(begin):
			return begin[i+1] != '\n'
		}
	}
	return false
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
	}
	return nil
}

// Columns implements Rows.
func (r *csvRows) Columns() []string { return r.columns }

// Close implements Rows.
func (r *csvRows) Close() error {
	_ = r.content.Close() // An error has come from reading.
	return r.file.Close()
}

// Read implements Rows.
func (r *csvRows) Read(columns []int, skip int, row func(cells []Cell) error) error {
	cells := make([]Cell, len(columns))
	for ; ; skip-- {
		record, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if skip > 0 {
			continue
		}
		for i, column := range columns {
			cells[i].Text = strings.TrimSpace(record[column])
		}
		if err := row(cells); err != nil {
			return fmt.Errorf("line %d: %w", r.line, err)
		}
	}
}

// next returns the next line of values; io.EOF at the end.
func (r *csvRows) next() ([]string, error) {
	r.begun = r.reader.InputOffset()
	record, err := r.reader.Read()
	if err != nil && !errors.Is(err, csv.ErrFieldCount) {
		if r.line > 0 && !errors.Is(err, io.EOF) && !errors.As(err, new(*csv.ParseError)) {
			err = fmt.Errorf("after line %d: %w", r.line, err) // Of the content.
		}
		return nil, err
	}
	r.line, _ = r.reader.FieldPos(0)
	if err != nil {
		return nil, fmt.Errorf("line %d: it has %s for %s", r.line, plural.Of(len(record), "value"), plural.Of(len(r.columns), "column"))
	}
	return record, nil
}
