package packed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"sort"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/files"
	"gonbatch/data/load"
	"gonbatch/internal/plural"
)

// Set is a dataset in packed files. Its examples are not in the program's memory, but in the
// system's cache of files, as far as there is room.
type Set struct {
	head   head
	shards []shard
	starts []int // The number of each file's first example; then the number of all.
}

// shard is a file of a set.
type shard struct {
	*mapping
	text     int64 // Where the records begin.
	examples int
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
func (s *Set) add(f files.File) error {
	file, err := f.Open()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read; the mapping stays
	h, text, err := readHead(file, f.Size)
	if err != nil {
		return err
	}
	if len(s.shards) == 0 {
		s.head = h
	} else if !reflect.DeepEqual(s.head.columns(), h.columns()) || !slices.Equal(s.head.Classes, h.Classes) || len(s.head.Inputs) != len(h.Inputs) {
		return fmt.Errorf("its examples have %v and %s, those of %s have %v and %s: write all files from one dataset", h.columns(), plural.Of(len(h.Classes), "class"), s.shards[0].path, s.head.columns(), plural.Of(len(s.head.Classes), "class"))
	}
	mapped, err := mapFile(f, file)
	if err != nil {
		return err
	}
	s.shards = append(s.shards, shard{mapped, int64(text), h.Examples})
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
		sums := from.text + int64(from.examples)*s.head.record()
		err := from.read(sums, sums+crc32.Size*int64(from.examples), func(all []byte) { hash.Write(all) })
		fmt.Fprintln(hash, err)
	}
	return hex.EncodeToString(hash.Sum(nil))[:32]
}

// Batch returns the inputs and labels that the written dataset has. See data.Dataset. An error
// names the file and the example in it.
func (s *Set) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if len(indices) == 0 {
		return nil, nil, fmt.Errorf("packed: %s: a batch of no examples", s.Name())
	}
	for _, index := range indices {
		if err := s.verify(index); err != nil {
			return nil, nil, fmt.Errorf("packed: %s: %w", s.Name(), err)
		}
	}
	begin := int64(0)
	var all []*tensors.Tensor
	for _, c := range s.head.columns() {
		t := c.make(len(indices))
		all = append(all, t)
		if err := s.fill(t, c, begin, indices); err != nil {
			load.Finalize(all)
			return nil, nil, fmt.Errorf("packed: %s: %w", s.Name(), err)
		}
		begin += int64(c.stored())
	}
	return all[:len(s.head.Inputs)], all[len(s.head.Inputs):], nil
}

// find returns the file of an example, and its number there.
func (s *Set) find(index int) (shard, int) {
	i := sort.SearchInts(s.starts, index+1) - 1
	return s.shards[i], index - s.starts[i]
}

// verify compares the checksum of an example.
func (s *Set) verify(index int) error {
	if index < 0 || index >= s.Len() {
		return fmt.Errorf("no example %d; there are 0 to %d", index, s.Len()-1)
	}
	from, i := s.find(index)
	size := s.head.record()
	sums := from.text + int64(from.examples)*size
	var got, want uint32
	err := from.read(from.text+int64(i)*size, from.text+int64(i+1)*size, func(record []byte) { got = crc32.Checksum(record, castagnoli) })
	if err == nil {
		err = from.read(sums+4*int64(i), sums+4*int64(i+1), func(sum []byte) { want = binary.LittleEndian.Uint32(sum) })
	}
	if err == nil && got != want {
		err = fmt.Errorf("%s: example %d is damaged: copy the file again, or remove it and write it again", from.path, i)
	}
	return err
}

// fill fills in the values of a column, which begin at a byte of each record.
func (s *Set) fill(t *tensors.Tensor, c column, begin int64, indices []int) error {
	each := func(use func(row int, part []byte)) error {
		for row, index := range indices {
			from, i := s.find(index)
			at := from.text + int64(i)*s.head.record() + begin
			if err := from.read(at, at+int64(c.stored()), func(part []byte) { use(row, part) }); err != nil {
				return err
			}
		}
		return nil
	}
	if c.values() == 0 {
		return nil
	}
	var readErr, err error
	if n := c.values(); c.Bytes {
		err = tensors.MutableFlatData(t, func(to []float32) {
			readErr = each(func(row int, part []byte) { expand(to[row*n:(row+1)*n], part) })
		})
	} else {
		err = t.MutableBytes(func(to []byte) {
			readErr = each(func(row int, part []byte) { copy(to[row*len(part):], part) })
		})
	}
	if readErr != nil {
		return readErr
	}
	return err
}
