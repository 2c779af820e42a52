package table

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// Stream returns a stream of the rows of the files that a pattern names; see files.Find. Each file
// is a part of the stream, read from beginning to end in each pass, and nothing is kept of it.
// Config.Dir has no use. All files must have the same columns, in any order.
//
//	trips, err := table.StreamCSV("trips-{0000..0999}.csv.gz", table.Config{Labels: []string{"fare"}})
//	ds, err := data.FromStream(trips, data.StreamConfig{Examples: 1_000_000, Buffer: 100_000})
//
// A row that is shuffled takes 4 bytes of memory for each column that is used, and about 80 more. A
// file is only checked as it is read: an error names it, the row and the column, and comes after
// the rows before. If the files can be read in full before training, Open shuffles all rows.
func Stream(pattern string, format Format, c Config) (data.Stream, error) {
	l, err := find(pattern, format, c)
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	return stream{l}, nil
}

// stream is a data.Stream of files.
type stream struct{ *layout }

var _ data.NamedParts = stream{}

func (s stream) Name() string             { return s.layout.Name }
func (s stream) Parts() int               { return len(s.files) }
func (s stream) PartName(part int) string { return filepath.Base(s.files[part].Path) }

// Read implements data.Stream. An example is a row of numbers.
func (s stream) Read(part, _, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		err := s.read(s.files[part], skip, func(row []byte) error {
			if !yield(bytes.Clone(row), nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, fmt.Errorf("table: %w", err))
		}
	}
}

// errStopped is the error of a reader that was stopped.
var errStopped = errors.New("stopped")

// Batch implements data.Stream.
func (s stream) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	if len(examples) == 0 {
		return nil, nil, fmt.Errorf("table: %s: a batch of no examples", s.Name())
	}
	numbers := make([]byte, 0, len(examples)*int(s.rowSize()))
	for _, row := range examples {
		numbers = append(numbers, row.([]byte)...)
	}
	return s.tensors(numbers)
}
