package tarset

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/files"
)

// Stream returns a stream of the samples in the shards that a pattern names, such as
// "train-{0000..0099}.tar.gz"; see files.Find. The shards may be compressed by gzip or zstd,
// whatever their names. Each is a part of the stream, read from beginning to end, and needs no
// index. Dir of the configuration has no use.
//
//	shards, err := tarset.Stream("train-{0000..0099}.tar.gz", config)
//	ds, err := data.FromStream(shards, data.StreamConfig{Examples: 100_000, Buffer: 2000})
//
// The samples that are shuffled stay in memory as they are in the shard, so Buffer limits the
// memory. A shard that is truncated, or in which the members of a sample are apart, is an error
// after the samples before. If the shards are not compressed and on a local disk, Open shuffles all
// of them.
func Stream(pattern string, c Config) (data.Stream, error) {
	c, shards, err := c.find(pattern)
	if err != nil {
		return nil, err
	}
	return &stream{c, shards}, nil
}

// stream is a data.Stream of shards.
type stream struct {
	config Config
	shards []files.File
}

var _ data.NamedParts = (*stream)(nil)

func (s *stream) Name() string             { return s.config.Name }
func (s *stream) Parts() int               { return len(s.shards) }
func (s *stream) PartName(part int) string { return filepath.Base(s.shards[part].Path) }

// Read implements data.Stream. It reads only the headers of the samples that it skips.
func (s *stream) Read(part, _, skip int) iter.Seq2[any, error] {
	shard := s.shards[part]
	return func(yield func(any, error) bool) {
		last := ""
		err := withContent(shard, func(c *content, from io.Reader) error {
			r := newReader(shard.Path, c, from, skip)
			for {
				sample, err := r.next()
				last = r.last
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if !yield(sample, nil) {
					return errStopped
				}
			}
		})
		switch {
		case err == nil || errors.Is(err, errStopped):
		case last == "":
			yield(nil, fmt.Errorf("tarset: %s: %w", shard.Path, err))
		default:
			yield(nil, fmt.Errorf("tarset: %s: at the sample %q: %w", shard.Path, last, err))
		}
	}
}

// errStopped is the error of a reader that was stopped.
var errStopped = errors.New("stopped")

// Batch implements data.Stream. An error names the shard and the key of the sample.
func (s *stream) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	sample := func(i int) (*Sample, error) { return examples[i].(*Sample), nil }
	return s.config.batch(len(examples), sample, func(i int) string {
		one := examples[i].(*Sample)
		return fmt.Sprintf("sample %q of %s", one.Key, one.Shard)
	})
}
