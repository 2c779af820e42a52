package kernel

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gonbatch/internal/rundir"
)

// keptTrainings is how long checkpoints are kept after the last run of their training.
const keptTrainings = 14 * 24 * time.Hour

// checkpointStore returns the folder for the checkpoints of programs that don't name one; "" if
// there is no place for it.
func checkpointStore(env environment) string {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "gonbatch", "trainings")
	}
	return cmp.Or(env.get(rundir.EnvCheckpoints), cache)
}

// pruneTrainings removes the checkpoints of training runs that have not run for a long time.
func pruneTrainings(store string, now time.Time) error {
	places, err := os.ReadDir(store)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, place := range places {
		name := filepath.Join(store, place.Name())
		newest, readErr := newestIn(name)
		if readErr == nil && now.Sub(newest) > keptTrainings { // Another kernel may be removing it.
			err = errors.Join(err, os.RemoveAll(name))
		}
	}
	return err
}

// newestIn returns when a folder, or a file in it, was last written.
func newestIn(folder string) (newest time.Time, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, walkErr error) error {
		if walkErr != nil {
			return walkErr
		}
		info, err := d.Info()
		if err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return err
	})
	return newest, err
}
