package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/internal/rundir"
	"gonbatch/submit/store"
)

// sumsName is the file with the programs' hashes, next to them. No cell can have this name.
const sumsName = ".sums.json"

// programMode makes programs read-only, because run directories have links to them.
const programMode = 0o555

// seal makes the programs in dir read-only, and stores their hashes.
func (r *Result) seal(dir string) error {
	r.Sums = map[string]string{}
	for name := range r.Programs {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, programMode); err != nil {
			return fmt.Errorf("the go command succeeded, but a program is missing: %w", err)
		}
		hash, err := store.HashFile(path)
		if err != nil {
			return err
		}
		r.Sums[name] = hash
	}
	text, err := json.Marshal(r.Sums)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumsName), text, 0o444)
}

// whole reports whether all programs are there and unchanged, and lists the changed ones in
// r.Changed. It reads an unchanged file only once: its hash is cached by size and time.
func (r *Result) whole() bool {
	r.Changed, r.Sums = nil, nil
	var sums map[string]string
	if err := rundir.ReadJSON(filepath.Join(r.Dir, sumsName), &sums); err != nil {
		return false
	}
	known := store.HashesIn(filepath.Dir(filepath.Dir(r.Dir)))
	for _, name := range slices.Sorted(maps.Keys(r.Programs)) {
		hash, err := known.Of(r.Programs[name])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false
		case err != nil || hash != sums[name]:
			r.Changed = append(r.Changed, name)
		}
	}
	_ = known.Save() // It is only a cache.
	r.Sums = sums
	return len(r.Changed) == 0
}
