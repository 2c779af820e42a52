package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/internal/gomodule"
)

// localState returns a hash of the names, sizes and times of the files in those packages that
// belong to local modules.
func (b *builder) localState(packages []string) (string, error) {
	modules, err := gomodule.Local(b.Dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, path := range packages {
		dir, in := gomodule.FolderOf(path, modules)
		if in == "" || dir == b.Dir {
			continue
		}
		files, err := folderState(dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, path, files)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// folderState lists the files of a package.
func folderState(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var state []string
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		if entry.Type().IsRegular() {
			state = append(state, fmt.Sprint(entry.Name(), info.Size(), info.ModTime().UnixNano()))
			continue
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			return nil, errUncovered
		}
	}
	slices.Sort(state)
	return state, embeds(dir, entries)
}

// embeds returns errUncovered if a package embeds files, which folderState doesn't look at.
func embeds(dir string, entries []fs.DirEntry) error {
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("\n//go:embed ")) {
			return errUncovered
		}
	}
	return nil
}
