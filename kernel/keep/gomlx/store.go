package gomlx

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/kernel/keep"
)

func init() { keep.Register(saveStore, loadStore) }

// weightsEntry is the metadata key for which of a store's variables belong to the model.
const weightsEntry = "weights"

func saveStore(w io.Writer, store *model.Store) error {
	take := checkpoint.View
	if keep.Sudden() {
		take = checkpoint.Take // A training run in another goroutine may continue.
	}
	s, err := take(store, nil)
	if err != nil {
		return err
	}
	weights, err := json.Marshal(map[string]map[string]bool{"weights": s.Weights})
	if err != nil {
		return err
	}
	params, err := encodeParams(store)
	if err != nil {
		return err
	}
	write, err := checkpoint.TensorFile(s.Tensors, map[string]string{weightsEntry: string(weights), paramsEntry: params})
	if err != nil {
		return err
	}
	return write(w)
}

func loadStore(r io.Reader, size int64) (*model.Store, error) {
	all, metadata, err := checkpoint.ReadTensors(r, size)
	if err != nil {
		return nil, err
	}
	var flags struct{ Weights map[string]bool }
	if err := json.Unmarshal([]byte(metadata[weightsEntry]), &flags); err != nil {
		return nil, fmt.Errorf("it isn't a model.Store: %w", err)
	}
	store := model.NewStore()
	if err := decodeParams(store, metadata[paramsEntry]); err != nil {
		return nil, err
	}
	s := &checkpoint.Snapshot{Tensors: all, Weights: flags.Weights}
	return store, s.Give(store)
}
