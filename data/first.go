package data

import (
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"
)

// First returns a dataset of the first n examples of ds, or of all if it has fewer.
func First(ds Dataset, n int) Dataset { return Range(ds, 0, min(n, ds.Len())) }

// Range returns a dataset of the examples from begin to end-1 of ds, for example to split a
// training set and a validation set.
func Range(ds Dataset, begin, end int) Dataset {
	if begin < 0 || end > ds.Len() || begin >= end {
		panic(fmt.Errorf("data: examples %d to %d of %s, which has %d", begin, end-1, ds.Name(), ds.Len()))
	}
	return part{ds, begin, end - begin}
}

type part struct {
	Dataset
	begin, n int
}

func (p part) Len() int { return p.n }

func (p part) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	shifted := make([]int, len(indices))
	for i, index := range indices {
		if index < 0 || index >= p.n {
			return nil, nil, fmt.Errorf("data: example %d of %s, which has %d", index, p.Name(), p.n)
		}
		shifted[i] = p.begin + index
	}
	return p.Dataset.Batch(shifted)
}
