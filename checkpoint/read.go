package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint/folder"
)

// Read reads the checkpoint in a folder ("checkpoints/main/step-00001200") and verifies all
// checksums.
func Read(path string) (_ *Snapshot, err error) {
	c, err := folder.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s := &Snapshot{
		Step: c.Step, Tensors: map[string]*tensors.Tensor{}, Weights: map[string]bool{}, Progress: c.Progress, Metrics: c.Metrics,
		WorldSize: c.WorldSize, CodeHash: c.CodeHash, Path: path,
	}
	weights, err := readFile(c, modelFile)
	if err != nil {
		return nil, err
	}
	training, err := readFile(c, trainingFile)
	if err != nil {
		return nil, err
	}
	maps.Copy(s.Tensors, training)
	maps.Copy(s.Tensors, weights)
	for path := range weights {
		if !OnlyTraining(path) { // Older versions wrote the learning rates of the optimizer of a part of the model among the weights.
			s.Weights[path] = true
		}
	}
	if s.Progress == nil {
		s.Progress = map[string]json.RawMessage{}
	}
	if s.Metrics == nil {
		s.Metrics = Metrics{}
	}
	return s, s.readRanks(c)
}

func readFile(c *folder.Checkpoint, name string) (all map[string]*tensors.Tensor, err error) {
	err = c.Read(name, func(r io.Reader, size int64) error {
		all, _, err = ReadTensors(r, size)
		return err
	})
	return all, err
}

func (s *Snapshot) readRanks(c *folder.Checkpoint) error {
	if !c.Has(ranksFile) {
		return nil
	}
	all, err := readFile(c, ranksFile)
	if err != nil {
		return err
	}
	for rank := range len(all) {
		t, ok := all[rankPath(rank)]
		if !ok {
			return fmt.Errorf("checkpoint %s: %s: rank %d of %d is missing", s.Path, ranksFile, rank, len(all))
		}
		data := []byte{}
		if !t.Shape().IsZeroSize() {
			if data, err = tensors.CopyFlatData[byte](t); err != nil {
				return fmt.Errorf("checkpoint %s: %s: rank %d: %w", s.Path, ranksFile, rank, err)
			}
		}
		s.Ranks = append(s.Ranks, data)
	}
	return nil
}
