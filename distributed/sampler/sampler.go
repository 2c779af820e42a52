// Package sampler decides which examples a training step uses, and which of them a rank gets.
//
// The order of an epoch depends only on the seed and the epoch, not on the world: with the same
// global batch size, a run sees the same examples in the same steps on 1 rank or on 100. Each
// global batch is cut into contiguous parts, one for each shard.
//
//	s, err := sampler.New(sampler.Config{Len: 60000, BatchSize: 64, Shards: 2, Shuffle: true, Seed: 1})
//	order := s.Epoch(0)
//	for step := range s.Steps() {
//		indices := s.Shards(order, step, rank, 1) // 32 indices
//	}
package sampler

import (
	"fmt"

	"gonbatch/data/shuffle"
	"gonbatch/internal/plural"
)

// Config configures a sampler.
type Config struct {
	// Len is the number of examples in the dataset.
	Len int
	// BatchSize is the number of examples in a step, over all shards (the global batch size).
	BatchSize int
	// Shards is the number of equal parts of a batch: ranks times devices per rank.
	Shards int
	// Shuffle draws a new order for each epoch. Without it, the order is the dataset's.
	Shuffle bool
	// FillLast uses the examples that don't fill the last batch of an epoch: the batch is filled up
	// with the first examples of the epoch. Without it, they are left out.
	FillLast bool
	// Seed determines the order. All ranks must use the same seed.
	Seed uint64
}

// Sampler divides a dataset into batches and shards. It is immutable and may be used from several
// goroutines.
type Sampler struct {
	config Config
}

// New returns a sampler, or an error if the batches can't be divided evenly.
func New(c Config) (*Sampler, error) {
	switch {
	case c.Shards < 1:
		return nil, fmt.Errorf("sampler: %d shards: there must be at least 1", c.Shards)
	case c.BatchSize < 1:
		return nil, fmt.Errorf("sampler: a batch size of %d: it must be at least 1", c.BatchSize)
	case c.BatchSize%c.Shards != 0:
		low := c.BatchSize / c.Shards * c.Shards
		fix := fmt.Sprintf("%d or %d", low, low+c.Shards)
		if low == 0 {
			fix = fmt.Sprint(c.Shards)
		}
		return nil, fmt.Errorf("sampler: the batch size of %d can't be divided evenly over %d ranks and devices: use %s", c.BatchSize, c.Shards, fix)
	case c.Len < c.BatchSize:
		return nil, fmt.Errorf("sampler: the dataset has %s, fewer than one batch of %d: use smaller batches, or more examples", plural.Of(c.Len, "example"), c.BatchSize)
	}
	return &Sampler{c}, nil
}

// Steps returns the number of batches in an epoch.
func (s *Sampler) Steps() int {
	if s.config.FillLast {
		return (s.config.Len-1)/s.config.BatchSize + 1
	}
	return s.config.Len / s.config.BatchSize
}

// BatchSize returns the number of examples in a step, over all shards.
func (s *Sampler) BatchSize() int { return s.config.BatchSize }

// Epoch returns the order of the examples in an epoch, counted from 0. It has a list of up to a
// million examples; of more, it needs no memory.
func (s *Sampler) Epoch(epoch int) shuffle.Order {
	if !s.config.Shuffle {
		return shuffle.Sorted()
	}
	return shuffle.Random(s.config.Len, s.config.Seed, uint64(epoch))
}

// Shards is the part of a step's batch that belongs to n shards, one after the other.
func (s *Sampler) Shards(order shuffle.Order, step, first, n int) []int {
	size := s.config.BatchSize / s.config.Shards
	examples := make([]int, n*size)
	for i := range examples {
		examples[i] = order.At((step*s.config.BatchSize + first*size + i) % s.config.Len)
	}
	return examples
}
