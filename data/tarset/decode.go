package tarset

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/gomlx/compute/shapes"

	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"

	"gonbatch/data/load"
)

// batch makes the tensors of n samples, on all processors. read reads one of them, and name names
// it. The error is that of the first one that can't be decoded.
func (c Config) batch(n int, read func(i int) (*Sample, error), name func(i int) string) (inputs, labels []*tensors.Tensor, err error) {
	if n == 0 {
		return nil, nil, fmt.Errorf("tarset: %s: a batch of no examples", c.Name)
	}
	rows, err := c.rows(n, read)
	defer func() {
		for _, row := range rows {
			load.Finalize(row)
		}
	}()
	if err != nil {
		return nil, nil, err
	}
	columns, err := c.stack(rows, name)
	if err != nil {
		load.Finalize(columns)
		return nil, nil, err
	}
	return columns[:len(c.Inputs)], columns[len(c.Inputs):], nil
}

// rows decodes the samples. It returns the error of the first one that can't be read.
func (c Config) rows(n int, read func(i int) (*Sample, error)) (rows [][]*tensors.Tensor, err error) {
	rows = make([][]*tensors.Tensor, n)
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0)) // This many samples are in memory at once.
	for i := range n {
		group.Go(func() error {
			sample, err := read(i)
			if err == nil {
				rows[i], err = c.row(sample)
			}
			errs[i] = err
			return nil
		})
	}
	_ = group.Wait() // The errors are in errs.
	return rows, cmp.Or(errs...)
}

// row decodes a sample: its inputs, then its labels.
func (c Config) row(sample *Sample) (row []*tensors.Tensor, err error) {
	for _, field := range slices.Concat(c.Inputs, c.Labels) {
		t, err := field.call(sample)
		if err != nil {
			return row, fmt.Errorf("tarset: %s: sample %q of %s: %s: %w", c.Name, sample.Key, sample.Shard, c.fieldName(len(row)), err)
		}
		row = append(row, t)
	}
	return row, nil
}

// fieldName counts inputs and labels from 0, as Config does.
func (c Config) fieldName(i int) string {
	if n := len(c.Inputs); i >= n {
		return fmt.Sprintf("label %d", i-n)
	}
	return fmt.Sprintf("input %d", i)
}

// stack puts the tensors of the samples one upon another. name names a sample.
func (c Config) stack(rows [][]*tensors.Tensor, name func(i int) string) (columns []*tensors.Tensor, err error) {
	for field, first := range rows[0] {
		for i, row := range rows {
			if !row[field].Shape().Equal(first.Shape()) {
				return columns, fmt.Errorf("tarset: %s: %s of %s is %s, and of %s %s: all must have one shape", c.Name, c.fieldName(field), name(0), first.Shape(), name(i), row[field].Shape())
			}
		}
		column, err := stackOne(rows, field, first.Shape())
		if err != nil {
			return columns, fmt.Errorf("tarset: %s: %s: %w", c.Name, c.fieldName(field), err)
		}
		columns = append(columns, column)
	}
	return columns, nil
}

func stackOne(rows [][]*tensors.Tensor, field int, shape shapes.Shape) (*tensors.Tensor, error) {
	column := tensors.FromShape(shapes.Make(shape.DType, append([]int{len(rows)}, shape.Dimensions...)...))
	if column.Shape().IsZeroSize() {
		return column, nil
	}
	var rowErr error
	err := column.MutableBytes(func(all []byte) {
		size := len(all) / len(rows)
		for i, row := range rows {
			err := row[field].ConstBytes(func(one []byte) { copy(all[i*size:(i+1)*size], one) })
			rowErr = errors.Join(rowErr, err)
		}
	})
	return column, errors.Join(rowErr, err)
}
