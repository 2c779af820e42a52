package table

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/files"
	"gonbatch/internal/plural"
)

// Format reads files of a format.
type Format interface {
	// Name is the format's name, with a version that changes if the same file gives other cells.
	Name() string
	// Open opens a file.
	Open(f files.File) (Rows, error)
}

// Rows are the rows of a file.
type Rows interface {
	// Columns returns the names of the columns.
	Columns() []string
	// Read calls row for each row after skipping the first ones, in order, with the cells of these
	// columns, which are valid until row returns. An error of row ends it, and is returned with the
	// place of the row.
	Read(columns []int, skip int, row func(cells []Cell) error) error
	// Close closes the file.
	Close() error
}

// Table is a dataset of the rows of files.
type Table struct {
	layout      *layout
	kept        *files.Kept // Rows of numbers of 4 bytes.
	fingerprint func() string
}

var (
	_ data.Fingerprinted = (*Table)(nil)
	_ data.Classed       = (*Table)(nil)
)

// Open opens the files that a pattern names; see files.Find. All must have the same columns, in any
// order. The first call for files and a configuration reads and checks all rows; later calls use
// its result, also on other ranks. An error names the file, the row and the column.
func Open(pattern string, format Format, c Config) (*Table, error) {
	l, err := find(pattern, format, c)
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	kept, err := files.Keep(files.Derived{Files: l.files, Kind: l.kind, Dir: c.Dir}, l.write)
	switch {
	case err != nil:
		return nil, fmt.Errorf("table: %w", err)
	case kept.Size == 0:
		return nil, fmt.Errorf("table: open %s: no rows in %s", pattern, plural.Of(len(l.files), "file"))
	case kept.Size%l.rowSize() != 0:
		return nil, fmt.Errorf("table: the kept numbers are damaged: remove %s", kept.Path)
	}
	fingerprint := sync.OnceValue(func() string { return files.Fingerprint(l.files, l.kind+" "+kept.Hash()) })
	return &Table{l, kept, fingerprint}, nil
}

// find finds files, and returns the layout of the first one.
func find(pattern string, format Format, c Config) (l *layout, err error) {
	if c.Name == "" {
		c.Name = files.Name(pattern)
	}
	list, err := files.Find(pattern)
	if err != nil {
		return nil, err
	}
	kind, err := c.kind(format.Name())
	if err != nil {
		return nil, err
	}
	err = withRows(list[0], format, func(rows Rows) (err error) {
		l, err = newLayout(c, rows.Columns())
		return err
	})
	if err != nil {
		return nil, err
	}
	l.files, l.format, l.kind = list, format, kind
	return l, nil
}

// withRows opens a file and closes it.
func withRows(f files.File, format Format, use func(Rows) error) error {
	rows, err := format.Open(f)
	if err == nil {
		err = errors.Join(use(rows), rows.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return nil
}

func (l *layout) rowSize() int64 { return 4 * int64(len(l.used)) }

// write writes the numbers of all rows.
func (l *layout) write(w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 1<<20)
	for _, f := range l.files {
		err := l.read(f, 0, func(row []byte) error {
			_, err := buffered.Write(row)
			return err
		})
		if err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// read calls use for each row of a file after skipping the first ones, with its numbers, which are
// valid until use returns.
func (l *layout) read(f files.File, skip int, use func(row []byte) error) error {
	numbers, row := make([]uint32, len(l.used)), make([]byte, 0, l.rowSize())
	return withRows(f, l.format, func(rows Rows) error {
		places, err := l.places(rows.Columns())
		if err != nil {
			return err
		}
		return rows.Read(places, skip, func(cells []Cell) error {
			if err := l.bits(numbers, cells); err != nil {
				return err
			}
			row = row[:0]
			for _, n := range numbers {
				row = binary.LittleEndian.AppendUint32(row, n)
			}
			return use(row)
		})
	})
}

// Name returns the name of the dataset.
func (t *Table) Name() string { return t.layout.Name }

// Len returns the number of rows.
func (t *Table) Len() int { return int(t.kept.Size / t.layout.rowSize()) }

// Fingerprint hashes the names and sizes of the files, the configuration, and the numbers: of more
// than 64 MiB, a part. It implements data.Fingerprinted.
func (t *Table) Fingerprint() string { return t.fingerprint() }

// Classes returns the names of the classes, if the configuration has some. It implements
// data.Classed.
func (t *Table) Classes() []string { return slices.Clone(t.layout.Classes) }

// Inputs returns the columns of the input.
func (t *Table) Inputs() []string { return slices.Clone(t.layout.Inputs) }

// Columns returns the columns of the input, and those of the labels or of the class.
func (t *Table) Columns() (inputs, labels []string) {
	return t.Inputs(), slices.Clone(t.layout.used[len(t.layout.Inputs):])
}

// Batch returns one input, and one tensor of labels if there are labels or a class; see Config and
// data.Dataset.
func (t *Table) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if err := data.CheckNumbers("table: "+t.Name(), indices, t.Len()); err != nil {
		return nil, nil, err
	}
	size := int(t.layout.rowSize())
	rows := make([]byte, len(indices)*size)
	for i, index := range indices {
		if _, err := t.kept.ReadAt(rows[i*size:(i+1)*size], int64(index)*int64(size)); err != nil {
			return nil, nil, fmt.Errorf("table: %s: row %d: %w", t.Name(), index, err)
		}
	}
	return t.layout.tensors(rows)
}

// tensors makes tensors of rows of numbers.
func (l *layout) tensors(numbers []byte) (inputs, labels []*tensors.Tensor, err error) {
	n, width, split := len(numbers)/int(l.rowSize()), len(l.used), len(l.Inputs)
	x := tensors.FromShape(shapes.Make(dtypes.Float32, n, split))
	err = tensors.MutableFlatData(x, func(flat []float32) { take(flat, numbers, width, 0, math.Float32frombits) })
	if width == split || err != nil {
		return []*tensors.Tensor{x}, nil, err
	}
	var y *tensors.Tensor
	if l.Class != "" {
		y = tensors.FromShape(shapes.Make(dtypes.Int32, n, 1))
		err = tensors.MutableFlatData(y, func(flat []int32) { take(flat, numbers, width, split, func(n uint32) int32 { return int32(n) }) })
	} else {
		y = tensors.FromShape(shapes.Make(dtypes.Float32, n, width-split))
		err = tensors.MutableFlatData(y, func(flat []float32) { take(flat, numbers, width, split, math.Float32frombits) })
	}
	return []*tensors.Tensor{x}, []*tensors.Tensor{y}, err
}

// take converts some columns of rows of width numbers, beginning with column first.
func take[T any](to []T, rows []byte, width, first int, value func(uint32) T) {
	columns := len(to) / (len(rows) / (4 * width))
	for i := range to {
		place := i/columns*width + first + i%columns
		to[i] = value(binary.LittleEndian.Uint32(rows[4*place:]))
	}
}
