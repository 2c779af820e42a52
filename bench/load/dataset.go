package main

import (
	"encoding/binary"
	"iter"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
)

const (
	imageCount = 6400
	billion    = 1_000_000_000
	pixels     = 28 * 28
)

// slow is a dataset of black images whose batches take a while.
type slow struct {
	wait  time.Duration
	count int
}

func (slow) Name() string { return "slow" }
func (s slow) Len() int   { return s.count }

func (s slow) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	time.Sleep(s.wait)
	numbers := make([]int32, len(indices))
	for i, index := range indices {
		numbers[i] = int32(index % 10)
	}
	return black(numbers)
}

// black returns black images with these labels.
func black(numbers []int32) (inputs, labels []*tensors.Tensor, err error) {
	n := len(numbers)
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, n*pixels), n, 28, 28, 1)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(numbers, n, 1)}, nil
}

// numbers is a stream of a billion examples in eight parts, each of pixels bytes.
type numbers struct{}

const parts = 8

func (numbers) Name() string { return "numbers" }
func (numbers) Parts() int   { return parts }

func (numbers) Read(part, _, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := part + parts*skip; i < billion; i += parts {
			example := make([]byte, pixels)
			binary.LittleEndian.PutUint64(example, uint64(i))
			if !yield(example, nil) {
				return
			}
		}
	}
}

func (numbers) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	numbers := make([]int32, len(examples))
	for i, example := range examples {
		numbers[i] = int32(binary.LittleEndian.Uint64(example.([]byte)) % 10)
	}
	return black(numbers)
}
