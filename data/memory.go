package data

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// Tensors returns a dataset of examples in memory, as PyTorch's TensorDataset does: example i is
// row i of each tensor, which is element i of its first axis. All tensors must have the same number
// of rows. labels may be empty.
//
//	x := tensors.FromFlatDataAndDimensions(features, n, 10)
//	y := tensors.FromFlatDataAndDimensions(targets, n, 1)
//	ds, err := data.Tensors("houses", []*tensors.Tensor{x}, []*tensors.Tensor{y})
//
// The dataset reads the tensors again for each batch, so they must neither change nor be freed.
func Tensors(name string, inputs, labels []*tensors.Tensor) (Dataset, error) {
	m := &memory{name: name, inputs: slices.Clone(inputs), labels: slices.Clone(labels)} // The caller may use its slices again.
	if len(inputs) == 0 {
		return nil, fmt.Errorf("data: %s: no inputs", name)
	}
	for i, t := range inputs {
		if err := m.check(t); err != nil {
			return nil, fmt.Errorf("data: %s: input %d %w", name, i, err)
		}
	}
	for i, t := range labels {
		if err := m.check(t); err != nil {
			return nil, fmt.Errorf("data: %s: label %d %w", name, i, err)
		}
	}
	return m, nil
}

// memory is a Dataset of tensors with n rows.
type memory struct {
	name           string
	inputs, labels []*tensors.Tensor
	n              int
}

// check refuses a tensor that has no rows, or not as many as those before it. Its error continues a
// sentence that begins with the tensor.
func (m *memory) check(t *tensors.Tensor) error {
	switch {
	case t == nil:
		return errors.New("is nil")
	case !t.Ok():
		return errors.New("has been freed")
	case t.Rank() == 0:
		return fmt.Errorf("is a scalar, %s: its first axis must be the example", t.Shape())
	case t.DType().Bits()%8 != 0:
		return fmt.Errorf("is %s: rows with elements smaller than a byte can't be read separately", t.Shape())
	}
	switch n := t.Shape().Dimensions[0]; {
	case n == 0:
		return fmt.Errorf("is %s, which has no rows", t.Shape())
	case m.n != 0 && n != m.n:
		return fmt.Errorf("is %s, with %d rows; the first input has %d", t.Shape(), n, m.n)
	default:
		m.n = n
	}
	return nil
}

func (m *memory) Name() string { return m.name }
func (m *memory) Len() int     { return m.n }

// Fingerprint hashes the tensors. It implements Fingerprinted.
func (m *memory) Fingerprint() string {
	hash := sha256.New()
	for _, t := range slices.Concat(m.inputs, m.labels) {
		fmt.Fprintln(hash, t.Shape())
		if !t.Ok() || t.Shape().IsZeroSize() {
			continue
		}
		if err := t.ConstBytes(func(all []byte) { hash.Write(all) }); err != nil {
			fmt.Fprintln(hash, err)
		}
	}
	return sum(hash)
}

// Batch implements Dataset.
func (m *memory) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if err := CheckNumbers(m.name, indices, m.n); err != nil {
		return nil, nil, err
	}
	if inputs, err = m.rows("input", m.inputs, indices); err != nil {
		return nil, nil, err
	}
	labels, err = m.rows("label", m.labels, indices)
	return inputs, labels, err
}

// rows returns tensors with some rows of others, which are the inputs or the labels.
func (m *memory) rows(what string, from []*tensors.Tensor, indices []int) (all []*tensors.Tensor, err error) {
	for i, t := range from {
		if !t.Ok() {
			return nil, fmt.Errorf("%s: %s %d has been freed since the dataset was made", m.name, what, i)
		}
		rows, err := takeRows(t, indices)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		all = append(all, rows)
	}
	return all, nil
}

func takeRows(t *tensors.Tensor, indices []int) (*tensors.Tensor, error) {
	dimensions := append([]int{len(indices)}, t.Shape().Dimensions[1:]...)
	rows := tensors.FromShape(shapes.Make(t.DType(), dimensions...))
	if rows.Shape().IsZeroSize() {
		return rows, nil
	}
	var copyErr error
	err := t.ConstBytes(func(all []byte) {
		size := len(all) / t.Shape().Dimensions[0]
		copyErr = rows.MutableBytes(func(some []byte) {
			for i, index := range indices {
				copy(some[i*size:(i+1)*size], all[index*size:])
			}
		})
	})
	return rows, errors.Join(err, copyErr)
}
