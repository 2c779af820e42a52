package packed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"reflect"
	"slices"
	"sort"

	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/files"
	"gonbatch/data/load"
	"gonbatch/internal/plural"
)

// Set is a dataset in packed files. It keeps no examples in the program's memory: they are in the
// system's cache of files, as far as there is room.
type Set struct {
	head   head
	shards []shard
	starts []int // The number of each file's first example; then the number of all.
}

// shard is an open file of a set. It is closed when the garbage collector finds that it is no
// longer used.
type shard struct {
	file *os.File
	text int64  // Where the records begin.
	sums []byte // The checksums of the records.
}

var (
	_ data.Fingerprinted = (*Set)(nil)
	_ data.Classed       = (*Set)(nil)
)

// Open opens the files that a pattern names, such as "photos-{00..15}.packed"; see files.Find. The
// examples are numbered in the order of the files, which must have the same inputs, labels and
// classes.
//
// A file that is truncated, or of another version, is an error. Each example has a checksum, which
// is compared each time that the example is read.
func Open(pattern string) (*Set, error) {
	found, err := files.Find(pattern)
	if err != nil {
		return nil, fmt.Errorf("packed: %w", err)
	}
	s := &Set{starts: []int{0}}
	for _, f := range found {
		if err := s.add(f); err != nil {
			return nil, fmt.Errorf("packed: open %s: %w", f.Path, err)
		}
	}
	if len(found) > 1 {
		s.head.Name = files.Name(pattern)
	}
	return s, nil
}

// add opens one more file.
func (s *Set) add(f files.File) (err error) {
	file, err := f.Open()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close() // It was only read.
		}
	}()
	h, text, err := readHead(file, f.Size)
	if err != nil {
		return err
	}
	if len(s.shards) == 0 {
		s.head = h
	} else if !reflect.DeepEqual(s.head.columns(), h.columns()) || !slices.Equal(s.head.Classes, h.Classes) || len(s.head.Inputs) != len(h.Inputs) {
		return fmt.Errorf("its examples have %v and %s, those of %s have %v and %s: write all files from one dataset", h.columns(), plural.Of(len(h.Classes), "class"), s.shards[0].file.Name(), s.head.columns(), plural.Of(len(s.head.Classes), "class"))
	}
	sums := make([]byte, crc32.Size*h.Examples)
	if _, err := file.ReadAt(sums, f.Size-int64(len(sums))); err != nil {
		return err
	}
	s.shards = append(s.shards, shard{file, int64(text), sums})
	s.starts = append(s.starts, s.Len()+h.Examples)
	return nil
}

// Name returns the name of the dataset that was written.
func (s *Set) Name() string { return s.head.Name }

// Len returns the number of examples.
func (s *Set) Len() int { return s.starts[len(s.starts)-1] }

// Classes returns the names of the classes, if the dataset that was written has some, as a
// data.Folder does.
func (s *Set) Classes() []string { return slices.Clone(s.head.Classes) }

// Fingerprint hashes the checksums of the examples. It implements data.Fingerprinted.
func (s *Set) Fingerprint() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%+v\n", s.head.columns())
	for _, from := range s.shards {
		hash.Write(from.sums)
		fmt.Fprintln(hash, error(nil)) // As training runs of earlier versions have recorded it.
	}
	return hex.EncodeToString(hash.Sum(nil))[:32]
}

// Batch returns the inputs and labels that the written dataset has. See data.Dataset. An error
// names the file and the example in it.
func (s *Set) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if err := data.CheckNumbers("packed: "+s.Name(), indices, s.Len()); err != nil {
		return nil, nil, err
	}
	columns, record := s.head.columns(), make([]byte, s.head.record())
	all := xslices.Map(columns, func(c column) *tensors.Tensor { return tensors.FromShape(c.of(len(indices))) })
	for row, index := range indices {
		err := s.read(record, index)
		for i, rest := 0, record; i < len(columns) && err == nil; i++ {
			n := columns[i].stored()
			err = columns[i].fill(all[i], row, rest[:n])
			rest = rest[n:]
		}
		if err != nil {
			load.Finalize(all)
			return nil, nil, fmt.Errorf("packed: %s: %w", s.Name(), err)
		}
	}
	return all[:len(s.head.Inputs)], all[len(s.head.Inputs):], nil
}

// read reads the record of an example, and compares its checksum.
func (s *Set) read(record []byte, index int) error {
	number := sort.SearchInts(s.starts, index+1) - 1
	from, i := s.shards[number], index-s.starts[number]
	_, err := from.file.ReadAt(record, from.text+int64(i)*int64(len(record)))
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: example %d: the file has been truncated since the program opened it", from.file.Name(), i)
	case err == nil && crc32.Checksum(record, castagnoli) != binary.LittleEndian.Uint32(from.sums[crc32.Size*i:]):
		return fmt.Errorf("%s: example %d is damaged: copy the file again, or remove it and write it again", from.file.Name(), i)
	}
	return err
}

// fill fills in a row of a tensor with what is stored of an example.
func (c column) fill(t *tensors.Tensor, row int, stored []byte) error {
	if !c.Bytes {
		return t.MutableBytes(func(all []byte) { copy(all[row*len(stored):], stored) })
	}
	return tensors.MutableFlatData(t, func(all []float32) {
		to := all[row*len(stored):][:len(stored)]
		for i, b := range stored {
			to[i] = fraction[b]
		}
	})
}

// fraction has n/255 for each byte: the value that package data gives to a pixel.
var fraction = func() (values [256]float32) {
	for i := range values {
		values[i] = float32(i) / 255
	}
	return values
}()
