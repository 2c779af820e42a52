package kernel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/build"
)

// keptTrainings is how long the checkpoints of a training are kept that has not run since.
const keptTrainings = 14 * 24 * time.Hour

// checkpointStore is the folder for the checkpoints of programs that name none; "" if there is no
// place for it.
func checkpointStore(env environment) string {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "gonbatch", "trainings")
	}
	return cmp.Or(env.get(rundir.EnvCheckpoints), cache)
}

// trainingPlace is the variable that gives a cell's program its place for checkpoints: one of the
// code, the working folder and the arguments. There is none for other commands.
func trainingPlace(command []string, cellDir string) (variable []string) {
	program := slices.IndexFunc(command, func(word string) bool { return strings.HasSuffix(word, build.ProgramSuffix) })
	text, err := os.ReadFile(filepath.Join(cellDir, build.TrainingFile))
	dir, dirErr := os.Getwd()
	if err != nil || dirErr != nil || program < 0 || program > 1 {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", dir, command[program+1:]))
	return []string{rundir.EnvCheckpoints + "=" + string(text) + "-" + hex.EncodeToString(sum[:4])}
}

// pruneTrainings removes the checkpoints of trainings that have not run for long.
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

// newestIn is when a file of a folder, or the folder, was last written.
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
