package gomlx

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/internal/plural"
	"gonbatch/kernel/keep"
)

func init() {
	keep.Register(saveTensor, loadTensor)
	keep.Register(saveList, loadList)
	keep.Register(saveMap, loadMap)
}

// prefix precedes the names of tensors in a file, which can't be empty.
const prefix = "/tensor/"

// keysEntry is the metadata key of the names of all tensors, including those that are nil.
const keysEntry = "keys"

func saveTensor(w io.Writer, t *tensors.Tensor) error {
	return saveAll(w, map[string]*tensors.Tensor{"0": t}, func(string) string { return "the tensor" })
}

func loadTensor(r io.Reader, size int64) (*tensors.Tensor, error) {
	list, err := loadList(r, size)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("it is %s", plural.Of(len(list), "tensor"))
	}
	return list[0], nil
}

func saveList(w io.Writer, list []*tensors.Tensor) error {
	all := map[string]*tensors.Tensor{}
	for i, t := range list {
		all[strconv.Itoa(i)] = t
	}
	return saveAll(w, all, func(key string) string { return fmt.Sprintf("the tensor [%s]", key) })
}

func loadList(r io.Reader, size int64) ([]*tensors.Tensor, error) {
	all, err := loadMap(r, size)
	if err != nil {
		return nil, err
	}
	list := make([]*tensors.Tensor, len(all))
	for i := range list {
		t, ok := all[strconv.Itoa(i)]
		if !ok {
			return nil, fmt.Errorf("it is a map of tensors")
		}
		list[i] = t
	}
	return list, nil
}

func saveMap(w io.Writer, all map[string]*tensors.Tensor) error {
	return saveAll(w, all, func(key string) string { return fmt.Sprintf("the tensor [%q]", key) })
}

// saveAll saves tensors. label describes one of them in an error, given its key.
func saveAll(w io.Writer, all map[string]*tensors.Tensor, label func(key string) string) error {
	keys, err := json.Marshal(slices.Sorted(maps.Keys(all)))
	if err != nil {
		return err
	}
	named := map[string]*tensors.Tensor{}
	for key, t := range all {
		if t != nil {
			named[prefix+key] = t
		}
	}
	write, err := checkpoint.TensorFile(named, map[string]string{keysEntry: string(keys)})
	if bad := (*checkpoint.TensorError)(nil); errors.As(err, &bad) {
		return fmt.Errorf("%s %s", label(strings.TrimPrefix(bad.Path, prefix)), bad.Reason)
	}
	if err != nil {
		return err
	}
	return write(w)
}

func loadMap(r io.Reader, size int64) (map[string]*tensors.Tensor, error) {
	named, metadata, err := checkpoint.ReadTensors(r, size)
	if err != nil {
		return nil, err
	}
	var keys []string
	if err := json.Unmarshal([]byte(metadata[keysEntry]), &keys); err != nil {
		return nil, fmt.Errorf("it has no valid tensors: %w", err)
	}
	all := map[string]*tensors.Tensor{}
	for _, key := range keys {
		all[key] = named[prefix+key]
	}
	return all, nil
}
