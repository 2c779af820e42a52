package tarset

import (
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/files"
	"gonbatch/internal/plural"
)

// Config says what the examples of a set are.
type Config struct {
	// Name of the dataset. Default: files.Name of the pattern.
	Name string
	// Inputs and Labels make the tensors of an example. There must be at least one input.
	Inputs, Labels []Field
	// Dir is the folder for the index. Default: the folder "derived" in data.Dir; shards of less
	// than 16 MB together are indexed in memory.
	Dir string
}

// Set is a dataset of samples in tar files. It keeps no samples in memory: each batch reads its
// own, on all processors.
type Set struct {
	config Config
	shards []files.File
	index  *index
	pool   *pool
}

var _ data.Fingerprinted = (*Set)(nil)

// Open opens the shards that a pattern names, such as "train-{0000..0099}.tar"; see files.Find. The
// first call for a list of shards reads the headers of all members, and writes an index of 8 bytes
// for each sample, which later calls use, also on other ranks. The samples are numbered in the
// order of the shards.
//
// A shard that is truncated or compressed, or in which the members of a sample are apart, is an
// error. A shard may have no samples. Members that WebDataset would skip are skipped.
func Open(pattern string, c Config) (*Set, error) {
	c, shards, err := c.find(pattern)
	if err != nil {
		return nil, err
	}
	index, err := openIndex(shards, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("tarset: %w", err)
	}
	if index.len() == 0 {
		return nil, fmt.Errorf("tarset: open %s: no samples in %s", pattern, plural.Of(len(shards), "shard"))
	}
	return &Set{config: c, shards: shards, index: index, pool: &pool{files: shards, open: map[int]*shard{}}}, nil
}

// find returns a complete configuration, and the shards.
func (c Config) find(pattern string) (Config, []files.File, error) {
	if c.Name == "" {
		c.Name = files.Name(pattern)
	}
	if len(c.Inputs) == 0 {
		return c, nil, fmt.Errorf("tarset: open %s: no inputs: name at least one field, such as tarset.Image", pattern)
	}
	shards, err := files.Find(pattern)
	if err != nil {
		return c, nil, fmt.Errorf("tarset: %w", err)
	}
	return c, shards, nil
}

// Name returns the name of the dataset.
func (s *Set) Name() string { return s.config.Name }

// Len returns the number of samples.
func (s *Set) Len() int { return s.index.len() }

// Fingerprint hashes the names and sizes of the shards. It implements data.Fingerprinted; of the
// fields, which are functions, it has only the number.
func (s *Set) Fingerprint() string {
	return files.Fingerprint(s.shards, fmt.Sprintf("%s, inputs %d, labels %d", indexKind, len(s.config.Inputs), len(s.config.Labels)))
}

// Sample reads a sample.
func (s *Set) Sample(i int) (*Sample, error) {
	if i < 0 || i >= s.Len() {
		return nil, fmt.Errorf("tarset: %s: no sample %d; there are 0 to %d", s.Name(), i, s.Len()-1)
	}
	number, begin, end, err := s.index.find(i)
	if err != nil {
		return nil, fmt.Errorf("tarset: %s: %w", s.Name(), err)
	}
	path := s.shards[number].Path
	if begin < 0 || begin >= end || end > s.shards[number].Size {
		return nil, fmt.Errorf("tarset: %s: the index is damaged: remove %s", s.Name(), s.index.kept.Path)
	}
	part, err := s.pool.read(number, begin, end)
	if err == nil {
		var sample *Sample
		if sample, err = parse(path, part); err == nil {
			return sample, nil
		}
	}
	return nil, fmt.Errorf("tarset: the sample at byte %d of %s: %w", begin, path, err)
}

// Batch returns the tensors of the fields, with the axis of the batch. See data.Dataset. An error
// names the shard and the key of the sample.
func (s *Set) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	read := func(i int) (*Sample, error) { return s.Sample(indices[i]) }
	return s.config.batch(len(indices), read, func(i int) string { return fmt.Sprintf("sample %d", indices[i]) })
}
