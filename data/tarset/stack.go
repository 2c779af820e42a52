package tarset

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/load"
)

// stack puts the tensors of the samples one upon another. name names a sample.
func (c Config) stack(rows [][]*tensors.Tensor, name func(i int) string) (columns []*tensors.Tensor, err error) {
	for field, first := range rows[0] {
		for i, row := range rows {
			if !row[field].Shape().Equal(first.Shape()) {
				load.Finalize(columns)
				return nil, fmt.Errorf("tarset: %s: %s of %s is %s, and of %s %s: all must have one shape", c.Name, c.fieldName(field), name(0), first.Shape(), name(i), row[field].Shape())
			}
		}
		column, err := stackOne(rows, field, first.Shape())
		if err != nil {
			load.Finalize(columns)
			return nil, fmt.Errorf("tarset: %s: %s: %w", c.Name, c.fieldName(field), err)
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
