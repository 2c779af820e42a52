package data

import (
	"fmt"

	"github.com/gomlx/compute/support/xslices"
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
	return partOf(ds, ds.Name(), end-begin, number, fmt.Sprintf("range from %d", begin))
}

// partOf returns a dataset of n examples of another one. number is the number of one of them in the
// other; by says what it depends on.
func partOf(ds Dataset, name string, n int, number func(i int) int, by string) Dataset {
	return part{wrapped{narrow(ds, others{n, number}), choice{name, n, number, by}}}
}

// part is a dataset of some examples of another one.
type part struct{ wrapped }

func (p part) choice() choice { return p.how.(choice) }
func (p part) Name() string   { return p.choice().name }
func (p part) Len() int       { return p.choice().n }

// narrow implements narrowed.
func (p part) narrow(o others) Dataset {
	number := p.choice().number
	p.Dataset = narrow(p.Dataset, others{o.n, func(i int) int { return number(o.number(i)) }})
	return p
}

// choice is how a part chooses its examples.
type choice struct {
	name   string
	n      int
	number func(i int) int
	by     string
}

func (c choice) settings(Dataset) string { return fmt.Sprintf("%s, length %d", c.by, c.n) }

func (c choice) batch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if err := CheckNumbers(c.name, indices, c.n); err != nil {
		return nil, nil, err
	}
	return batchOf(ds, epoch, xslices.Map(indices, c.number))
}
