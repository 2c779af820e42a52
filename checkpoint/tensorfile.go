package checkpoint

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint/safetensors"
	"gonbatch/internal/hugepages"
)

// fileName returns a variable's name in a file: its path without the leading slash. variablePath is
// the inverse.
func fileName(path string) string     { return strings.TrimPrefix(path, model.ScopeSeparator) }
func variablePath(name string) string { return model.ScopeSeparator + name }

// TensorFile prepares a safetensors file of tensors, which are named by variable paths
// ("/dense/weights"). The returned function writes the file. If a file can't hold one of the
// tensors, the error is a *TensorError.
func TensorFile(all map[string]*tensors.Tensor, metadata map[string]string) (func(io.Writer) error, error) {
	var entries []safetensors.Tensor
	for _, path := range slices.Sorted(maps.Keys(all)) {
		entry, err := fileType(path, all[path].Shape())
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	plan, err := safetensors.NewPlan(entries, metadata)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		if _, err := w.Write(plan.Header()); err != nil {
			return err
		}
		for _, entry := range plan.Tensors() {
			if err := writeTensor(w, all[variablePath(entry.Name)]); err != nil {
				return fmt.Errorf("%s: %w", entry.Name, err)
			}
		}
		return nil
	}, nil
}

func writeTensor(w io.Writer, t *tensors.Tensor) error {
	if t.Shape().IsZeroSize() {
		return nil
	}
	var writeErr error
	err := t.ConstBytes(func(data []byte) { _, writeErr = w.Write(data) })
	if err != nil {
		return err
	}
	return writeErr
}

// ReadTensors reads a safetensors file of size bytes from its beginning. It returns the tensors by
// variable path, and the metadata.
func ReadTensors(r io.Reader, size int64) (all map[string]*tensors.Tensor, metadata map[string]string, err error) {
	header, err := safetensors.ReadHeader(r, size)
	if err != nil {
		return nil, nil, err
	}
	all = map[string]*tensors.Tensor{}
	for _, entry := range header.Tensors {
		dtype, ok := fromFile[entry.DType]
		if !ok {
			return nil, nil, fmt.Errorf("%s has type %s, which GoMLX doesn't have", entry.Name, entry.DType)
		}
		t := tensors.FromShape(shapes.Make(dtype, entry.Shape...))
		if err := readTensor(r, t); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", entry.Name, err)
		}
		all[variablePath(entry.Name)] = t
	}
	return all, header.Metadata, nil
}

func readTensor(r io.Reader, t *tensors.Tensor) error {
	if t.Shape().IsZeroSize() {
		return nil
	}
	var readErr error
	err := t.MutableBytes(func(data []byte) {
		hugepages.Advise(data)
		_, readErr = io.ReadFull(r, data)
	})
	if err != nil {
		return err
	}
	return readErr
}
