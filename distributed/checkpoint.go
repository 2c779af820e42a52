package distributed

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/checkpoint"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/rundir"
)

// Save writes the model's variables, in GoMLX's checkpoint format, to the run directory, and returns the folder's path on every rank. Rank 0
// writes; all ranks return together, with the same error if it failed. Without a run directory nothing is written and the path is empty.
// The folder, named after the global step, appears whole or not at all; saving the same step again replaces it.
func (w *World) Save(store *model.Store) (string, error) {
	if w.run == (rundir.Dir{}) {
		return "", nil
	}
	path := filepath.Join(w.run.Checkpoints(), fmt.Sprintf("step-%08d", optimizer.GetGlobalStep(store)))
	err := w.OnMain(func() error { return saveTo(store, path) })
	if err != nil {
		return "", fmt.Errorf("distributed: save a checkpoint: %w", err)
	}
	return path, nil
}

func saveTo(store *model.Store, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(path), ".saving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	handler, err := checkpoint.Build(store).Dir(temporary).Done()
	if err != nil {
		return err
	}
	if err := handler.Save(); err != nil {
		return err
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
