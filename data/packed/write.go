package packed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sys/unix"

	"gonbatch/data"
	"gonbatch/data/load"
	"gonbatch/internal/fetch"
	"gonbatch/internal/plural"
)

// Config says how examples are stored.
type Config struct {
	// Bytes stores float32 values as bytes, in a quarter of the room. They must be from 0 to 1, and
	// are rounded to the nearest n/255, which is what images in color from files have anyway.
	Bytes bool
}

// Keep opens the file at path, or writes it first if it isn't there. Of several processes, one
// writes it and the others wait. A file that was written from another dataset is an error: one with
// another name, number of examples, inputs or labels, or another data.Fingerprint, which all
// datasets of this module have, also below data.Range, data.Split and the like. If your own dataset
// has none, remove the file when its examples change.
func Keep(path string, ds data.Dataset, c Config) (*Set, error) {
	want, err := headOf(ds, c)
	if err != nil {
		return nil, fmt.Errorf("packed: %s: %w", ds.Name(), err)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := writeOnce(path, ds, want); err != nil {
			return nil, fmt.Errorf("packed: write %s: %w", path, err)
		}
	}
	set, err := Open(path)
	if err != nil {
		return nil, err
	}
	if got, err := set.head.text(); err != nil || !equal(got, want) {
		return nil, errors.Join(fmt.Errorf("packed: %s was written from other examples than those of %s, or with another Config: remove it to write it again", path, ds.Name()), err)
	}
	return set, nil
}

func equal(text []byte, h head) bool {
	other, err := h.text()
	return err == nil && string(text) == string(other)
}

// writeOnce writes a file unless another process does.
func writeOnce(path string, ds data.Dataset, h head) error {
	unlock, err := fetch.Lock(context.Background(), path, nil)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return write(path, ds, h)
}

// Write writes the examples of a dataset to a file, which it replaces when all are written. Write
// the dataset before data.Augment changes it: the examples must be the same in all epochs.
func Write(path string, ds data.Dataset, c Config) error {
	h, err := headOf(ds, c)
	if err == nil {
		err = write(path, ds, h)
	}
	if err != nil {
		return fmt.Errorf("packed: write %s: %w", path, err)
	}
	return nil
}

// headOf describes a dataset by its first example.
func headOf(ds data.Dataset, c Config) (head, error) {
	h := head{ByteOrder: byteOrder, Name: ds.Name(), Examples: ds.Len(), Source: data.Fingerprint(ds), Classes: data.Classes(ds)}
	inputs, labels, err := ds.Batch([]int{0})
	if err != nil {
		return h, err
	}
	defer load.Finalize(append(inputs, labels...))
	if h.Inputs, err = columnsOf(inputs, c.Bytes); err != nil {
		return h, err
	}
	if h.Labels, err = columnsOf(labels, false); err != nil {
		return h, err
	}
	if nativeOrder() != byteOrder {
		return h, fmt.Errorf("this machine's byte order is %s: only %s is supported", nativeOrder(), byteOrder)
	}
	return h, h.check()
}

func nativeOrder() string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return "little"
	}
	return "big"
}

func columnsOf(all []*tensors.Tensor, asBytes bool) ([]column, error) {
	var columns []column
	for _, t := range all {
		c, err := columnOf(t, asBytes)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// write writes a file by way of a temporary one.
func write(path string, ds data.Dataset, h head) error {
	if err := sameInAllEpochs(ds); err != nil {
		return err
	}
	text, err := h.text()
	if err != nil {
		return err
	}
	size := h.size(len(text))
	if err := checkRoom(filepath.Dir(path), size); err != nil {
		return err
	}
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := writeAll(writer, text, ds, h)
		_ = writer.CloseWithError(err) // It returns no error.
		written <- err
	}()
	fileErr := fetch.WriteFile(path, reader, size, "")
	_ = reader.Close() // Likewise. If writing has failed, writeAll ends.
	if err := <-written; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return fileErr
}

// comparedEpochs is the number of epochs that are compared. Some changes are rare.
const comparedEpochs = 16

// sameInAllEpochs refuses a dataset that data.Augment changes: the file would have none of the
// changes.
func sameInAllEpochs(ds data.Dataset) error {
	if _, ok := ds.(data.Epochs); !ok {
		return nil
	}
	indices := make([]int, min(16, ds.Len()))
	for i := range indices {
		indices[i] = i
	}
	first, err := contents(ds.Batch(indices))
	if err != nil {
		return err
	}
	for epoch := range comparedEpochs {
		other, err := contents(data.EpochBatch(ds, epoch, indices))
		if err != nil {
			return err
		}
		if !slices.EqualFunc(first, other, bytes.Equal) {
			return fmt.Errorf("the examples of %s differ between epochs: write the dataset first, and augment what packed.Open returns", ds.Name())
		}
	}
	return nil
}

// contents returns the bytes of a batch's tensors, and frees them.
func contents(inputs, labels []*tensors.Tensor, err error) (all [][]byte, _ error) {
	if err != nil {
		return nil, err
	}
	batch := slices.Concat(inputs, labels)
	defer load.Finalize(batch)
	for _, t := range batch {
		var content []byte
		if !t.Shape().IsZeroSize() {
			if err := t.ConstBytes(func(bytes []byte) { content = slices.Clone(bytes) }); err != nil {
				return nil, err
			}
		}
		all = append(all, content)
	}
	return all, nil
}

// checkRoom refuses a file that doesn't fit, before hours of decoding.
func checkRoom(dir string, size int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < size {
		return fmt.Errorf("it needs %.1f MB, and %s has room for %.1f MB: free some, or choose another folder", float64(size)/1e6, dir, float64(free)/1e6)
	}
	return nil
}

// batchBytes is about the size of the examples that are in memory at once.
const batchBytes = 32 << 20

// writeAll writes the content of a file.
func writeAll(w io.Writer, text []byte, ds data.Dataset, h head) error {
	if _, err := w.Write(text); err != nil {
		return err
	}
	n := int(min(max(batchBytes/max(h.record(), 1), 1), 1024))
	var sums []byte
	for begin := 0; begin < h.Examples; begin += n {
		indices := make([]int, min(n, h.Examples-begin))
		for i := range indices {
			indices[i] = begin + i
		}
		records, err := encode(ds, indices, h)
		if err != nil {
			return err
		}
		for _, record := range records {
			sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(record, castagnoli))
			if _, err := w.Write(record); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(sums)
	return err
}

// encode returns the records of some examples.
func encode(ds data.Dataset, indices []int, h head) ([][]byte, error) {
	inputs, labels, err := ds.Batch(indices)
	if err != nil {
		return nil, err
	}
	all := append(inputs, labels...)
	defer load.Finalize(all)
	if len(inputs) != len(h.Inputs) || len(labels) != len(h.Labels) {
		return nil, fmt.Errorf("examples %d to %d of %s have %s and %s, the first one has %d and %d", indices[0], indices[len(indices)-1], ds.Name(),
			plural.Of(len(inputs), "input"), plural.Of(len(labels), "label"), len(h.Inputs), len(h.Labels))
	}
	records := make([][]byte, len(indices))
	for i, c := range h.columns() {
		if want := c.make(len(indices)).Shape(); !all[i].Shape().Equal(want) {
			return nil, fmt.Errorf("examples %d to %d of %s are %s instead of %s: all must have the shape of the first one", indices[0], indices[len(indices)-1], ds.Name(), all[i].Shape(), want)
		}
		if row, err := appendColumn(records, all[i], c); err != nil {
			return nil, fmt.Errorf("example %d of %s: %w", indices[row], ds.Name(), err)
		}
	}
	return records, nil
}

// appendColumn appends the values of a tensor to the records of its rows. If one can't be encoded,
// it returns its row.
func appendColumn(records [][]byte, t *tensors.Tensor, c column) (row int, err error) {
	if c.values() == 0 {
		return 0, nil
	}
	if c.Bytes {
		n := c.values()
		for row, values := range slices.Collect(slices.Chunk(tensors.MustCopyFlatData[float32](t), n)) {
			if records[row], err = appendBytes(records[row], values); err != nil {
				return row, err
			}
		}
		return 0, nil
	}
	return 0, t.ConstBytes(func(all []byte) {
		n := c.stored()
		for row := range records {
			records[row] = append(records[row], all[row*n:(row+1)*n]...)
		}
	})
}
