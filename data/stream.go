package data

import (
	"errors"
	"fmt"
	"iter"

	"github.com/gomlx/gomlx/core/tensors"
)

// Stream is a source of examples that can only be read from beginning to end, such as compressed
// files or a generator.
type Stream interface {
	// Name returns a short and stable name.
	Name() string
	// Parts returns the number of parts, such as files, at least 1. Each is read on its own. Any
	// may be empty, but not all of them in the same pass: that is an error, after the last example
	// before it.
	Parts() int
	// Read yields the examples of a part, in order, after skipping the first ones. They may be
	// encoded. A stream may differ from one pass over its parts to the next; passes are counted
	// from 0. The same call must yield the same examples each time. An error ends the training.
	// Read may be called while other parts are read.
	Read(part, pass, skip int) iter.Seq2[any, error]
	// Batch decodes examples. See Dataset.Batch. It may be called concurrently. If it fails, it is
	// called again with one example after the other, to find the one that can't be decoded.
	Batch(examples []any) (inputs, labels []*tensors.Tensor, err error)
}

// NamedParts is a Stream whose parts have names, such as those of files. Errors have them.
type NamedParts interface {
	Stream
	// PartName returns the name of a part.
	PartName(part int) string
}

// StreamConfig says how training uses a stream.
type StreamConfig struct {
	// Examples is the number of examples after which an epoch ends. A stream that ends is read
	// again. The next epoch goes on where the one before ended.
	Examples int
	// Buffer is the number of examples that are shuffled, over all ranks: blocks of the stream of
	// this length. Default: 10,000. A training with shuffle: false has none: each lane reads its
	// parts in order, but several lanes exchange their parts after each pass.
	Buffer int
	// Lanes is the number of readers over all ranks, each with parts of its own. It must divide the
	// batch size, and be a multiple of the number of devices of all ranks. Default: as many as
	// there are parts, as far as that is possible. If there are fewer parts than lanes, several
	// lanes read a part, and each uses some of its examples.
	Lanes int
}

// Streamed is a stream that training can use, but nothing else: its examples have no numbers.
// World.Loader of package distributed knows it.
type Streamed struct {
	Stream
	Config StreamConfig
}

var _ Dataset = (*Streamed)(nil)

// FromStream returns a dataset for Fit. A training on it depends only on the seed and the number of
// lanes, and resumes at the same examples, after reading the newest block of the buffer again. An
// error of the stream is the error of the training. Augment, Resize and CenterCrop change its
// images; Read of a stream of your own can make examples that differ from one pass to the next.
func FromStream(s Stream, c StreamConfig) (*Streamed, error) {
	if c.Buffer == 0 {
		c.Buffer = 10_000
	}
	switch {
	case s.Parts() < 1:
		return nil, fmt.Errorf("data: stream %s: it has %d parts: it must have at least 1", s.Name(), s.Parts())
	case c.Examples < 1:
		return nil, fmt.Errorf("data: stream %s: Examples, after which an epoch ends, must be at least 1, got %d", s.Name(), c.Examples)
	case c.Buffer < 0 || c.Lanes < 0:
		return nil, fmt.Errorf("data: stream %s: Buffer and Lanes can't be negative, got %d and %d", s.Name(), c.Buffer, c.Lanes)
	}
	return &Streamed{s, c}, nil
}

// Len returns the number of examples in an epoch.
func (s *Streamed) Len() int { return s.Config.Examples }

// Batch is an error.
func (s *Streamed) Batch([]int) (inputs, labels []*tensors.Tensor, err error) {
	return nil, nil, errors.New("data: the stream " + s.Name() + " has no numbered examples: it can be the training set of Fit, and be passed to data.Augment, data.Resize and data.CenterCrop, but it can't be split, mixed, validated or predicted")
}
