// Package parquet reads tables of numbers from Parquet files, as package table does from CSV files:
//
//	trips, err := parquet.Open("trips-{00..11}.parquet", table.Config{Labels: []string{"fare"}})
//
// Stream reads them from beginning to end. Columns must have numbers, booleans (0 and 1) or, for
// classes, text. Dates, times and lists are refused. A duration is written as a plain whole number,
// by pandas of nanoseconds, and read as that. A null is a missing value. Fields of a group
// are named "group.field". Only programs that import the package have its library.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"gonbatch/data"
	"gonbatch/data/files"
	"gonbatch/data/table"
)

// Open opens Parquet files; see table.Open. Config.Comma and Config.Columns are for CSV only.
func Open(pattern string, c table.Config) (*table.Table, error) {
	if err := check(pattern, c); err != nil {
		return nil, err
	}
	return table.Open(pattern, reader{}, c)
}

// Stream returns a stream of the rows of Parquet files; see table.Stream. It is quick to resume,
// because groups of rows are skipped without reading them.
func Stream(pattern string, c table.Config) (data.Stream, error) {
	if err := check(pattern, c); err != nil {
		return nil, err
	}
	return table.Stream(pattern, reader{}, c)
}

func check(pattern string, c table.Config) error {
	if c.Comma != 0 || len(c.Columns) > 0 {
		return fmt.Errorf("parquet: open %s: Config.Comma and Config.Columns are for CSV files", pattern)
	}
	return nil
}

type reader struct{}

func (reader) Name() string { return "parquet 1" }

// Open reads a file's schema.
func (reader) Open(f files.File) (table.Rows, error) {
	file, err := f.Open()
	if err != nil {
		return nil, err
	}
	r := &rows{file: file}
	if err := r.open(f.Size); err != nil {
		_ = file.Close() // It was only read.
		return nil, err
	}
	return r, nil
}

// rows are the rows of a file.
type rows struct {
	file    *os.File
	parquet *parquet.File
	leaves  []parquet.LeafColumn
	columns []string
}

func (r *rows) open(size int64) (err error) {
	defer recovered(&err)
	if err := checkEnd(r.file, size); err != nil {
		return err
	}
	if r.parquet, err = parquet.OpenFile(r.file, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
		return err
	}
	for _, path := range r.parquet.Schema().Columns() {
		leaf, ok := r.parquet.Schema().Lookup(path...)
		if !ok {
			return fmt.Errorf("the schema lacks %q", path)
		}
		r.leaves, r.columns = append(r.leaves, leaf), append(r.columns, strings.Join(path, "."))
	}
	return nil
}

// checkEnd refuses a file whose end says that its metadata is larger than the file. The library
// would make room for it.
func checkEnd(file io.ReaderAt, size int64) error {
	var end [8]byte
	if size < int64(len(end)) {
		return fmt.Errorf("it has only %d bytes: it is no Parquet file, or truncated", size)
	}
	if _, err := file.ReadAt(end[:], size-int64(len(end))); err != nil {
		return err
	}
	if metadata := int64(binary.LittleEndian.Uint32(end[:])); string(end[4:]) == "PAR1" && metadata > size-int64(len(end)) {
		return fmt.Errorf("it has %d bytes, and its end says that its metadata has %d: the file is damaged", size, metadata)
	}
	return nil
}

// recovered makes an error of a panic: the library panics at some damaged files.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("the file is damaged: %v", value)
	}
}

// Columns implements table.Rows.
func (r *rows) Columns() []string { return r.columns }

// Close implements table.Rows.
func (r *rows) Close() error { return r.file.Close() }

// Read implements table.Rows. It doesn't read groups of rows that it skips.
func (r *rows) Read(columns []int, skip int, row func(cells []table.Cell) error) error {
	converts := make([]convert, len(columns))
	for i, column := range columns {
		var err error
		if converts[i], err = converter(r.leaves[column]); err != nil {
			return fmt.Errorf("column %q: %w", r.columns[column], err)
		}
	}
	at := 0
	for _, group := range r.parquet.RowGroups() {
		end := at + int(group.NumRows())
		if end > at && end <= skip {
			at = end
			continue
		}
		values, err := r.values(group, columns, converts)
		for cells := make([]table.Cell, len(columns)); at < end && err == nil; at++ {
			if err = values.row(cells); err == nil && at >= skip {
				err = row(cells)
			}
			if err != nil {
				err = fmt.Errorf("row %d: %w", at+1, err)
			}
		}
		if err := errors.Join(err, values.close()); err != nil {
			return err
		}
	}
	return nil
}

// values reads the values of columns in a group of rows.
type values []*column

type column struct {
	name    string
	reader  parquet.ColumnChunkValueReader
	convert convert
	buffer  []parquet.Value // Not yet used.
	all     [512]parquet.Value
}

func (r *rows) values(group parquet.RowGroup, columns []int, converts []convert) (all values, err error) {
	defer recovered(&err)
	for i, n := range columns {
		reader := parquet.NewColumnChunkValueReader(group.ColumnChunks()[n])
		all = append(all, &column{name: r.columns[n], reader: reader, convert: converts[i]})
	}
	return all, nil
}

// row reads a row.
func (v values) row(cells []table.Cell) (err error) {
	defer recovered(&err)
	for i, c := range v {
		if len(c.buffer) == 0 {
			if err := c.fill(); err != nil {
				return fmt.Errorf("column %q: %w", c.name, err)
			}
		}
		cells[i] = table.Cell{}
		if value := c.buffer[0]; !value.IsNull() {
			cells[i] = c.convert(value)
		}
		c.buffer = c.buffer[1:]
	}
	return nil
}

// fill reads the next values.
func (c *column) fill() (err error) {
	defer recovered(&err)
	n, err := c.reader.ReadValues(c.all[:])
	c.buffer = c.all[:n]
	switch {
	case n > 0:
		return nil
	case errors.Is(err, io.EOF):
		return errors.New("the file is damaged: the column has too few values")
	case err == nil:
		return io.ErrNoProgress
	}
	return err
}

func (v values) close() (err error) {
	defer recovered(&err)
	for _, c := range v {
		err = errors.Join(err, c.reader.Close())
	}
	return err
}

// convert converts a value that is not null.
type convert func(v parquet.Value) table.Cell

// converter returns how to convert the values of a column.
func converter(leaf parquet.LeafColumn) (_ convert, err error) {
	defer recovered(&err)
	if leaf.MaxRepetitionLevel > 0 {
		return nil, errors.New("it is a list: split it into columns of numbers")
	}
	kind, logical := leaf.Node.Type().Kind(), format.LogicalTypeValue(nil)
	if of := leaf.Node.Type().LogicalType(); of != nil {
		logical = of.Value
	}
	switch logical := logical.(type) {
	case *format.DecimalType:
		unit := math.Pow10(int(logical.Scale))
		if kind == parquet.Int32 || kind == parquet.Int64 {
			return func(v parquet.Value) table.Cell { return number(float64(integer(kind, v)) / unit) }, nil
		}
		return func(v parquet.Value) table.Cell { return number(bigEndian(v.ByteArray()) / unit) }, nil
	case nil, *format.IntType, *format.StringType, *format.EnumType:
		if convert := plain(kind, logical); convert != nil {
			return convert, nil
		}
	}
	return nil, fmt.Errorf("values of type %s can't be read: convert them to numbers", leaf.Node.Type())
}

// plain returns how to convert values of a kind; nil if they can't be.
func plain(kind parquet.Kind, logical format.LogicalTypeValue) convert {
	ints, _ := logical.(*format.IntType)
	switch kind {
	case parquet.Boolean:
		return func(v parquet.Value) table.Cell {
			if v.Boolean() {
				return number(1)
			}
			return number(0)
		}
	case parquet.Int32, parquet.Int64:
		if ints != nil && !ints.IsSigned {
			return func(v parquet.Value) table.Cell { return whole(unsigned(kind, v)) }
		}
		return func(v parquet.Value) table.Cell { return whole(integer(kind, v)) }
	case parquet.Float:
		return func(v parquet.Value) table.Cell { return number(float64(v.Float())) }
	case parquet.Double:
		return func(v parquet.Value) table.Cell { return number(v.Double()) }
	case parquet.ByteArray:
		return func(v parquet.Value) table.Cell { return table.Cell{Text: strings.TrimSpace(string(v.ByteArray()))} }
	}
	return nil
}

func number(value float64) table.Cell { return table.Cell{Number: value, IsNumber: true} }

// whole returns a whole number: as text if a float64 doesn't have all its digits, which may be the
// name of a class.
func whole[T int64 | uint64](n T) table.Cell {
	const most = 1 << 53
	if n <= most && int64(n) >= -most {
		return number(float64(n))
	}
	return table.Cell{Text: fmt.Sprint(n)}
}

func integer(kind parquet.Kind, v parquet.Value) int64 {
	if kind == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// bigEndian returns a number in two's complement.
func bigEndian(bytes []byte) float64 {
	n := new(big.Int).SetBytes(bytes)
	if len(bytes) > 0 && bytes[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
	}
	value, _ := new(big.Float).SetInt(n).Float64()
	return value
}

func unsigned(kind parquet.Kind, v parquet.Value) uint64 {
	if kind == parquet.Int32 {
		return uint64(v.Uint32())
	}
	return v.Uint64()
}
