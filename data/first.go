package data

import (
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"
)

// First returns a dataset of the first n examples of ds, or of all if it has fewer.
func First(ds Dataset, n int) Dataset { return Range(ds, 0, min(n, ds.Len())) }

// Range returns a dataset of the examples from begin to end-1 of ds. To draw parts at random, use
// Split.
func Range(ds Dataset, begin, end int) Dataset {
	if begin < 0 || end > ds.Len() || begin >= end {
		panic(fmt.Errorf("data: examples %d to %d of %s, which has %d", begin, end-1, ds.Name(), ds.Len()))
	}
	number := func(i int) int { return begin + i }
	return part{wrapped: wrapped{narrow(ds, others{end - begin, number})}, name: ds.Name(), n: end - begin, number: number, choice: fmt.Sprintf("range from %d", begin)}
}

// part is a dataset of some examples of another one.
type part struct {
	wrapped
	name   string
	n      int
	number func(i int) int // In the other dataset.
	choice string          // What number depends on.
}

var _ Epochs = part{}

func (p part) Name() string { return p.name }
func (p part) Len() int     { return p.n }

// Fingerprint implements Fingerprinted.
func (p part) Fingerprint() string { return p.fingerprint("%s, length %d", p.choice, p.n) }

func (p part) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	numbers, err := p.numbers(indices)
	if err != nil {
		return nil, nil, err
	}
	return p.Dataset.Batch(numbers)
}

// EpochBatch implements Epochs.
func (p part) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	numbers, err := p.numbers(indices)
	if err != nil {
		return nil, nil, err
	}
	return EpochBatch(p.Dataset, epoch, numbers)
}

func (p part) numbers(indices []int) ([]int, error) {
	numbers := make([]int, len(indices))
	for i, index := range indices {
		if index < 0 || index >= p.n {
			return nil, fmt.Errorf("data: example %d of %s, which has %d", index, p.name, p.n)
		}
		numbers[i] = p.number(index)
	}
	return numbers, nil
}
