package data

import (
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"
)

// placed is an example of a stream, and where it is there.
type placed struct {
	example            any
	part, pass, number int
}

// random returns the random numbers of the example. They are the same in any lane and any batch.
func (p placed) random(seed uint64) *rand.Rand {
	return randomOf(placeStream+uint64(p.part), seed, p.pass, p.number)
}

// batchOf changes the tensors that a stream has made of examples.
type batchOf func(examples []placed, inputs, labels []*tensors.Tensor) (_, _ []*tensors.Tensor, err error)

// placedStream is a stream that changes the batches of another one, and knows where their examples
// are.
type placedStream struct {
	Stream
	change batchOf
}

// onPlaces returns a stream with changed batches.
func onPlaces(s Stream, change batchOf) Stream {
	p := placedStream{s, change}
	if named, ok := s.(NamedParts); ok {
		return namedStream{p, named}
	}
	return p
}

// namedStream is a placedStream whose parts have names.
type namedStream struct {
	placedStream
	named NamedParts
}

// PartName implements NamedParts.
func (s namedStream) PartName(part int) string { return s.named.PartName(part) }

// Read implements Stream.
func (s placedStream) Read(part, pass, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		number := skip
		for example, err := range s.Stream.Read(part, pass, skip) {
			if !yield(placed{example, part, pass, number}, err) {
				return
			}
			number++
		}
	}
}

// Batch implements Stream.
func (s placedStream) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	all, plain := make([]placed, len(examples)), make([]any, len(examples))
	for i, example := range examples {
		all[i] = example.(placed)
		plain[i] = all[i].example
	}
	if inputs, labels, err = s.Stream.Batch(plain); err != nil {
		return nil, nil, err
	}
	return s.change(all, inputs, labels)
}

// augmentedStream changes the images of a stream.
type augmentedStream struct {
	name       string
	seed       uint64
	transforms []Transform
}

func (a augmentedStream) batch(examples []placed, inputs, labels []*tensors.Tensor) (_, _ []*tensors.Tensor, err error) {
	err = transformAll(inputs, len(examples), a.transforms, func(row int) *rand.Rand { return examples[row].random(a.seed) })
	if err != nil {
		return nil, nil, fmt.Errorf("data: augment %s: %w", a.name, err)
	}
	return inputs, labels, nil
}
