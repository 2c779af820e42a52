package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/rundir"
)

// describe lists the results in a run's directory.
func describe(w io.Writer, dir rundir.Dir) error {
	if _, err := fmt.Fprintf(w, "\nrun directory: %s\n", dir.Path()); err != nil {
		return err
	}
	for _, item := range []struct{ path, meaning string }{
		{dir.Executed(), "the notebook with its outputs"},
		{dir.RankLog(0), "log of rank 0"},
		{dir.Metrics(), "metrics, one JSON object per line"},
		{dir.Curves(), "curves of the metrics, and sample images, as PNG"},
		{dir.TensorBoard(), "for tensorboard --logdir"},
		{dir.Traces(), "traces of some updates, for https://ui.perfetto.dev"},
		{dir.Checkpoints(), "checkpoints, the weights as safetensors"},
		{dir.Sources(), "the notebook as a Go module"},
		{dir.ManifestPath(), "hashes, versions, options"},
	} {
		if empty(item.path) {
			continue
		}
		name, err := filepath.Rel(dir.Path(), item.path)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "  %-16s %s\n", name, item.meaning); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether there is nothing at path: no file, or an empty folder.
func empty(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return true
	}
	if !info.IsDir() {
		return info.Size() == 0
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}
