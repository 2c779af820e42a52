package data

import (
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

// change changes the tensors that a stream has made of examples.
type change func(examples []placed, inputs, labels []*tensors.Tensor) (_, _ []*tensors.Tensor, err error)

// placedStream is a stream that changes the batches of another one, and knows where their examples
// are.
type placedStream struct {
	Stream
	change change
}

// changed returns a stream with changed batches.
func (s *Streamed) changed(c change) *Streamed {
	p := placedStream{s.Stream, c}
	if named, ok := s.Stream.(NamedParts); ok {
		return &Streamed{namedStream{p, named}, s.Config}
	}
	return &Streamed{p, s.Config}
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
