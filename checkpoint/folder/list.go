package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Info is a checkpoint in the result of List.
type Info struct {
	Manifest
	// Path is the checkpoint's folder. Step is known even if Err isn't nil.
	Path string
	// Err says why the checkpoint can't be used. It is nil if checkpoint.json is valid and all
	// files have the right sizes.
	Err error
}

// Valid reports whether the checkpoint can be used, judged by names and sizes.
func (i Info) Valid() bool { return i.Err == nil }

// List returns the checkpoints in a folder, the newest step first. It reads only their
// checkpoint.json, and may be called while others save and remove; it leaves out checkpoints that
// vanish meanwhile. If the folder doesn't exist, there are none.
func List(root string) ([]Info, error) {
	var all []Info
	for range attempts {
		paths, err := candidates(root)
		if err != nil {
			return nil, fmt.Errorf("checkpoint: list: %w", err)
		}
		var vanished bool
		if all, vanished = statAll(paths); !vanished {
			break
		}
		// The removed checkpoint may have made room for a newer one that wasn't there when the
		// names were read.
	}
	return all, nil
}

// attempts is the maximum number of times to read names that keep changing.
const attempts = 10

func statAll(paths []string) (all []Info, vanished bool) {
	for _, path := range paths {
		info := Stat(path)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			vanished = true
			continue
		}
		all = append(all, info)
	}
	return all, vanished
}

// candidates returns the folders that may be checkpoints, the newest step first. A checkpoint that
// is just being replaced counts.
func candidates(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[int64]string{}
	for _, entry := range entries {
		name, replaced := strings.CutPrefix(entry.Name(), replacedPrefix)
		step, ok := stepOf(name)
		if _, has := found[step]; !ok || replaced && has {
			continue
		}
		found[step] = filepath.Join(root, entry.Name())
	}
	var paths []string
	for _, step := range slices.Backward(slices.Sorted(maps.Keys(found))) {
		paths = append(paths, found[step])
	}
	return paths, nil
}

// Stat checks a single checkpoint's folder.
func Stat(path string) Info {
	info := Info{Path: path}
	info.Step, _ = stepOf(strings.TrimPrefix(filepath.Base(path), replacedPrefix))
	c, err := Open(path)
	if err != nil {
		info.Err = err
		return info
	}
	info.Manifest, info.Err = c.Manifest, c.Close()
	return info
}
