package tarset

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sort"

	"gonbatch/data/files"
	"gonbatch/data/load"
)

// index says where each sample is. It has, for each shard, the offsets of the samples and the end
// of the last one, and at its end the number of samples in each shard; all numbers have 8 bytes. It
// stays in its file, so a billion samples need no memory.
type index struct {
	kept   *files.Kept
	starts []int // The number of each shard's first sample; then the number of all.
}

// indexKind changes with the format, and with the rules for what a sample is.
const indexKind = "tarset 1"

// openIndex indexes the shards, once for all programs.
func openIndex(shards []files.File, dir string) (*index, error) {
	kept, err := files.Keep(files.Derived{Files: shards, Kind: indexKind, Dir: dir}, func(w io.Writer) error {
		return writeIndex(w, shards)
	})
	if err != nil {
		return nil, err
	}
	return readIndex(kept, len(shards))
}

// readIndex reads the end of an index of so many shards.
func readIndex(kept *files.Kept, shards int) (*index, error) {
	x := &index{kept: kept, starts: make([]int, 1, shards+1)}
	counts := make([]byte, 8*shards)
	if _, err := kept.ReadAt(counts, kept.Size-int64(len(counts))); err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	for i := range shards {
		x.starts = append(x.starts, x.starts[i]+int(binary.LittleEndian.Uint64(counts[8*i:])))
	}
	if want := 8 * int64(x.len()+2*shards); kept.Size != want {
		return nil, fmt.Errorf("the index has %d bytes instead of %d: remove %s", kept.Size, want, kept.Path)
	}
	return x, nil
}

// writeIndex scans several shards at once.
func writeIndex(w io.Writer, shards []files.File) error {
	next := 0
	workers := 2 * runtime.GOMAXPROCS(0) // They wait for the file system most of the time.
	queue := load.NewQueue(load.Options[[]int64]{Workers: workers, Drop: func([]int64) {}}, func() (func() ([]int64, error), bool) {
		if next == len(shards) {
			return nil, false
		}
		shard := shards[next]
		next++
		return func() ([]int64, error) { return scan(shard) }, true
	})
	var counts []int64
	for offsets, err := range queue.All() {
		if err != nil {
			return err
		}
		if err := binary.Write(w, binary.LittleEndian, offsets); err != nil {
			return err
		}
		counts = append(counts, int64(len(offsets)-1))
	}
	return binary.Write(w, binary.LittleEndian, counts)
}

// len returns the number of samples.
func (x *index) len() int { return x.starts[len(x.starts)-1] }

// find returns the shard of a sample, and where it is there.
func (x *index) find(i int) (shard int, begin, end int64, err error) {
	shard = sort.SearchInts(x.starts, i+1) - 1
	var span [16]byte
	if _, err := x.kept.ReadAt(span[:], 8*int64(i+shard)); err != nil {
		return 0, 0, 0, fmt.Errorf("read the index: %w", err)
	}
	return shard, int64(binary.LittleEndian.Uint64(span[:])), int64(binary.LittleEndian.Uint64(span[8:])), nil
}
