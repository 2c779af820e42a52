// Package sampler decides which examples a step of training uses, and which of them a rank gets.
//
// The order of an epoch depends on the seed and the epoch only, not on the world: a run with the
// same global batch size sees the same examples in the same steps on 1 rank or on 100. Each global
// batch is cut into one contiguous part a rank.
//
//	s, err := sampler.New(sampler.Config{Len: 60000, BatchSize: 64, Shards: 2, Shuffle: true, Seed: 1})
//	order := s.Epoch(0)
//	for step := range s.Steps() {
//		indices := s.Shard(order, step, rank) // 32 indices
//	}
package sampler

import (
	"fmt"
	"math/rand/v2"
)

// Config says what to sample.
type Config struct {
	// Len is the number of examples in the dataset.
	Len int
	// BatchSize is the number of examples in a step, over all shards (the global batch size).
	BatchSize int
	// Shards is the number of equal parts of a batch: ranks times devices of a rank.
	Shards int
	// Shuffle draws a new order for each epoch; otherwise it is the dataset's.
	Shuffle bool
	// Seed of the shuffling. All ranks must have the same.
	Seed uint64
}

// Sampler is immutable and may be used from several goroutines.
type Sampler struct {
	config Config
}

// New checks the configuration.
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
		return nil, fmt.Errorf("sampler: the dataset has %d examples, fewer than one batch of %d", c.Len, c.BatchSize)
	}
	return &Sampler{c}, nil
}

// Steps is the number of whole batches in an epoch. The examples that are left over are not used in
// that epoch.
func (s *Sampler) Steps() int { return s.config.Len / s.config.BatchSize }

// BatchSize is the number of examples in a step, over all shards.
func (s *Sampler) BatchSize() int { return s.config.BatchSize }

// Epoch is the order of the examples in an epoch, counted from 0.
func (s *Sampler) Epoch(epoch int) []int {
	if !s.config.Shuffle {
		order := make([]int, s.config.Len)
		for i := range order {
			order[i] = i
		}
		return order
	}
	return rand.New(rand.NewPCG(s.config.Seed, uint64(epoch))).Perm(s.config.Len)
}

// Shard is the part of a step's batch that belongs to one shard. It is a part of order, not a copy.
func (s *Sampler) Shard(order []int, step, shard int) []int { return s.Shards(order, step, shard, 1) }

// Shards is the part of a step's batch that belongs to n shards, one after the other. It is a part
// of order, not a copy.
func (s *Sampler) Shards(order []int, step, first, n int) []int {
	size := s.config.BatchSize / s.config.Shards
	start := step*s.config.BatchSize + first*size
	return order[start : start+n*size]
}
