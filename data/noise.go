package data

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"
)

// Noise returns a dataset of n vectors of normally distributed random numbers, [batch, size]
// float32, without labels. Example i is the same each time.
func Noise(name string, n, size int, seed uint64) Dataset { return noise{name, n, size, seed} }

type noise struct {
	name    string
	n, size int
	seed    uint64
}

func (d noise) Name() string { return d.name }
func (d noise) Len() int     { return d.n }

// Fingerprint implements Fingerprinted.
func (d noise) Fingerprint() string { return fingerprintOf(fmt.Appendf(nil, "%+v", d)) }

func (d noise) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if err := checkNumbers(d.name, indices, d.n); err != nil {
		return nil, nil, err
	}
	values := make([]float32, 0, len(indices)*d.size)
	for _, index := range indices {
		rng := rand.New(rand.NewPCG(d.seed, uint64(index)))
		for range d.size {
			values = append(values, float32(rng.NormFloat64()))
		}
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(indices), d.size)}, nil, nil
}
