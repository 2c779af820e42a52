package tarset

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"

	"gonbatch/data"
	"gonbatch/data/files"
	"gonbatch/data/load"
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
	fields []Field // Inputs, then labels.
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
	if c.Name == "" {
		c.Name = files.Name(pattern)
	}
	if len(c.Inputs) == 0 {
		return nil, fmt.Errorf("tarset: open %s: no inputs: name at least one field, such as tarset.Image", pattern)
	}
	shards, err := files.Find(pattern)
	if err != nil {
		return nil, fmt.Errorf("tarset: %w", err)
	}
	index, err := openIndex(shards, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("tarset: %w", err)
	}
	if index.len() == 0 {
		return nil, fmt.Errorf("tarset: open %s: no samples in %s", pattern, plural.Of(len(shards), "shard"))
	}
	return &Set{config: c, fields: slices.Concat(c.Inputs, c.Labels), shards: shards, index: index, pool: newPool(shards)}, nil
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
	if len(indices) == 0 {
		return nil, nil, fmt.Errorf("tarset: %s: a batch of no examples", s.Name())
	}
	rows, err := s.rows(indices)
	defer func() {
		for _, row := range rows {
			load.Finalize(row)
		}
	}()
	if err != nil {
		return nil, nil, err
	}
	columns, err := s.stack(indices, rows)
	if err != nil {
		return nil, nil, err
	}
	return columns[:len(s.config.Inputs)], columns[len(s.config.Inputs):], nil
}

// rows decodes the samples. It returns the error of the first one that can't be read.
func (s *Set) rows(indices []int) (rows [][]*tensors.Tensor, err error) {
	rows = make([][]*tensors.Tensor, len(indices))
	errs := make([]error, len(indices))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0)) // This many samples are in memory at once.
	for i, index := range indices {
		group.Go(func() error {
			rows[i], errs[i] = s.row(index)
			return nil
		})
	}
	_ = group.Wait() // The errors are in errs.
	for _, err := range errs {
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// row decodes a sample.
func (s *Set) row(index int) (row []*tensors.Tensor, err error) {
	sample, err := s.Sample(index)
	if err != nil {
		return nil, err
	}
	for i, field := range s.fields {
		t, err := field.call(sample)
		if err != nil {
			return row, fmt.Errorf("tarset: %s: sample %q of %s: %s: %w", s.Name(), sample.Key, sample.Shard, s.fieldName(i), err)
		}
		row = append(row, t)
	}
	return row, nil
}

// fieldName counts inputs and labels from 0, as Config does.
func (s *Set) fieldName(i int) string {
	if n := len(s.config.Inputs); i >= n {
		return fmt.Sprintf("label %d", i-n)
	}
	return fmt.Sprintf("input %d", i)
}
