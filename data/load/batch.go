package load

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/internal/plural"
)

// Check looks at a batch that was loaded. Its errors are those that fail makes of an example, given
// by its row in the batch. A nil Check accepts all.
type Check func(inputs, labels []*tensors.Tensor, fail func(row int, err error) error) error

// of checks a batch, and frees it if there is an error.
func (c Check) of(inputs, labels []*tensors.Tensor, fail func(row int, err error) error) error {
	if c == nil {
		return nil
	}
	err := c(inputs, labels, fail)
	if err != nil {
		Finalize(inputs)
		Finalize(labels)
	}
	return err
}

// Batch returns examples of a dataset, as ds.Batch does. If the dataset fails or panics, the error
// is an *Error.
func Batch(ds data.Dataset, indices []int, check Check) (inputs, labels []*tensors.Tensor, err error) {
	return load(indices, ds.Batch, check, of(ds))
}

// EpochBatch returns examples of a dataset in an epoch of a training run, as data.EpochBatch does.
// If the dataset fails or panics, the error is an *Error.
func EpochBatch(ds data.Dataset, epoch int, indices []int, check Check) (inputs, labels []*tensors.Tensor, err error) {
	return load(indices, func(indices []int) (inputs, labels []*tensors.Tensor, err error) {
		return data.EpochBatch(ds, epoch, indices)
	}, check, of(ds))
}

// of returns the errors of examples of a dataset.
func of(ds data.Dataset) func(examples []int, err error) *Error {
	return func(examples []int, err error) *Error {
		return &Error{Dataset: ds.Name(), Examples: examples, Err: err}
	}
}

// Examples decodes examples of a stream, as s.Batch does. place says where one of them is in the
// stream, for the error, which is an *Error.
func Examples(s data.Stream, examples []any, place func(i int) string, check Check) (inputs, labels []*tensors.Tensor, err error) {
	batch := func(numbers []int) (inputs, labels []*tensors.Tensor, err error) {
		return s.Batch(xslices.Map(numbers, func(i int) any { return examples[i] }))
	}
	return load(xslices.Iota(0, len(examples)), batch, check, func(numbers []int, err error) *Error {
		where := place(numbers[0])
		if len(numbers) > 1 {
			where = fmt.Sprintf("the batch of %s that begins with %s", plural.Of(len(numbers), "example"), where)
		}
		return &Error{Dataset: s.Name(), Place: where, Err: err}
	})
}

type batchFunc = func(indices []int) (inputs, labels []*tensors.Tensor, err error)

// load calls a dataset, with a list of numbers of its own. failed makes an error of that of one
// example, or of all.
func load(indices []int, batch batchFunc, check Check, failed func(indices []int, err error) *Error) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = guarded(batch, slices.Clone(indices))
	indices = slices.Clone(indices)
	if err == nil {
		return inputs, labels, check.of(inputs, labels, func(row int, err error) error { return failed(indices[row:row+1], err) })
	}
	if index, err := blame(indices, err, alone(batch)); index >= 0 {
		return nil, nil, failed([]int{index}, err)
	}
	return nil, nil, failed(indices, err)
}

// alone returns a function that loads an example for its error.
func alone(batch batchFunc) func(index int) error {
	return func(index int) error {
		inputs, labels, err := guarded(batch, []int{index})
		Finalize(inputs)
		Finalize(labels)
		return err
	}
}

// guarded makes an error of a panic, and of tensors that can't be used.
func guarded(batch batchFunc, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
	}()
	if inputs, labels, err = batch(indices); err != nil {
		return nil, nil, err
	}
	return own(inputs, labels, len(indices))
}

// errFreed is the error of a dataset that keeps its tensors.
var errFreed = errors.New("Batch returned a tensor that was freed after an earlier batch: it must return new tensors each time")

// own returns the tensors of a batch of n examples, each of which the caller can free on its own. A
// tensor that is there twice, such as an image that is also the label, is copied.
func own(inputs, labels []*tensors.Tensor, n int) (ownInputs, ownLabels []*tensors.Tensor, err error) {
	seen := map[*tensors.Tensor]bool{}
	take := func(all []*tensors.Tensor) []*tensors.Tensor {
		all = slices.Clone(all)
		for i, t := range all {
			switch {
			case err != nil:
			case t == nil:
				err = errors.New("Batch returned a nil tensor")
			case !t.Ok():
				err = errFreed
			case t.Rank() == 0 || t.Shape().Dimensions[0] != n:
				err = fmt.Errorf("Batch returned a tensor of shape %s for %s: its first axis must be the examples", t.Shape(), plural.Of(n, "example"))
			case seen[t]:
				all[i], err = t.LocalClone()
			}
			seen[t] = true
		}
		return all
	}
	ownInputs = take(inputs)
	ownLabels = take(labels)
	return ownInputs, ownLabels, err
}

// Finalize frees tensors at once, without waiting for the garbage collector.
func Finalize(all []*tensors.Tensor) {
	for _, t := range all {
		if t != nil {
			_ = t.FinalizeAll()
		}
	}
}
