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

	"github.com/gomlx/compute/dtypes"
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
	have := func() bool {
		_, err := os.Stat(path)
		return !errors.Is(err, os.ErrNotExist)
	}
	if err := fetch.Once(context.Background(), path, nil, have, func() error { return write(path, ds, want) }); err != nil {
		return nil, fmt.Errorf("packed: write %s: %w", path, err)
	}
	set, err := Open(path)
	if err != nil {
		return nil, err
	}
	got, gotErr := set.head.text()
	text, err := want.text()
	if err = errors.Join(err, gotErr); err != nil || !bytes.Equal(got, text) {
		return nil, errors.Join(fmt.Errorf("packed: %s was written from other examples than those of %s, or with another Config: remove it to write it again", path, ds.Name()), err)
	}
	return set, nil
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
	return h, h.check()
}

// columnsOf describes tensors of a batch.
func columnsOf(all []*tensors.Tensor, asBytes bool) (columns []column, err error) {
	for _, t := range all {
		shape := t.Shape()
		if shape.DType.Bits()%8 != 0 || shape.DType.Bits() == 0 {
			return nil, fmt.Errorf("%s: values smaller than a byte can't be written", shape)
		}
		columns = append(columns, column{shape.DType.String(), slices.Clone(shape.Dimensions[1:]), asBytes && shape.DType == dtypes.Float32})
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
	return fetch.Write(path, size, "", func(w io.Writer) error { return writeAll(w, text, ds, h) })
}

// comparedEpochs is the number of epochs that are compared. Some changes are rare.
const comparedEpochs = 16

// sameInAllEpochs refuses a dataset that data.Augment changes: the file would have none of the
// changes.
func sameInAllEpochs(ds data.Dataset) error {
	if _, ok := ds.(data.Epochs); !ok {
		return nil
	}
	indices := slices.Collect(load.Cut(0, min(16, ds.Len()), 16))[0]
	first, err := contents(ds.Batch(indices))
	if err != nil {
		return err
	}
	for epoch := range comparedEpochs {
		other, err := contents(data.EpochBatch(ds, epoch, indices))
		if err != nil {
			return err
		}
		if !bytes.Equal(first, other) {
			return fmt.Errorf("the examples of %s differ between epochs: write the dataset first, and augment what packed.Open returns", ds.Name())
		}
	}
	return nil
}

// contents returns the bytes of a batch's tensors, and frees them.
func contents(inputs, labels []*tensors.Tensor, err error) (all []byte, _ error) {
	batch := slices.Concat(inputs, labels)
	defer load.Finalize(batch)
	for _, t := range batch {
		if err == nil {
			all, err = appendBytes(all, t)
		}
	}
	return all, err
}

// appendBytes appends the bytes of a tensor.
func appendBytes(to []byte, t *tensors.Tensor) (_ []byte, err error) {
	if !t.Shape().IsZeroSize() {
		err = t.ConstBytes(func(bytes []byte) { to = append(to, bytes...) })
	}
	return to, err
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
	var sums []byte
	for indices := range load.Cut(0, h.Examples, int(min(max(batchBytes/h.record(), 1), 1024))) {
		columns, err := h.encode(ds, indices)
		if err != nil {
			return err
		}
		for row := range indices {
			var record []byte
			for _, column := range columns {
				n := len(column) / len(indices)
				record = append(record, column[row*n:][:n]...)
			}
			sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(record, castagnoli))
			if _, err := w.Write(record); err != nil {
				return err
			}
		}
	}
	_, err := w.Write(sums)
	return err
}

// encode returns the bytes of the columns of some examples.
func (h head) encode(ds data.Dataset, indices []int) (columns [][]byte, err error) {
	inputs, labels, err := ds.Batch(indices)
	if err != nil {
		return nil, err
	}
	all := append(inputs, labels...)
	defer load.Finalize(all)
	first, last := indices[0], indices[len(indices)-1]
	if len(inputs) != len(h.Inputs) || len(labels) != len(h.Labels) {
		return nil, fmt.Errorf("examples %d to %d of %s have %s and %s, the first one has %d and %d", first, last, ds.Name(),
			plural.Of(len(inputs), "input"), plural.Of(len(labels), "label"), len(h.Inputs), len(h.Labels))
	}
	for i, c := range h.columns() {
		if want := c.of(len(indices)); !all[i].Shape().Equal(want) {
			return nil, fmt.Errorf("examples %d to %d of %s are %s instead of %s: all must have the shape of the first one", first, last, ds.Name(), all[i].Shape(), want)
		}
		bytes, row, err := c.encode(all[i])
		if err != nil {
			return nil, fmt.Errorf("example %d of %s: %w", indices[row], ds.Name(), err)
		}
		columns = append(columns, bytes)
	}
	return columns, nil
}

// encode returns what is stored of a tensor. If a value can't be encoded, it returns its row.
func (c column) encode(t *tensors.Tensor) (stored []byte, row int, err error) {
	if !c.Bytes || t.Shape().IsZeroSize() {
		stored, err = appendBytes(nil, t)
		return stored, 0, err
	}
	n := c.stored()
	for i, value := range tensors.MustCopyFlatData[float32](t) {
		if !(value >= 0 && value <= 1) {
			return nil, i / n, fmt.Errorf("value %d is %g: with Config.Bytes, values must be from 0 to 1: normalize later, by data.Augment, or leave Bytes off", i%n, value)
		}
		stored = append(stored, byte(value*255+0.5))
	}
	return stored, 0, nil
}
