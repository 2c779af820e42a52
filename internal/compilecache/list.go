package compilecache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Program is an entry of a cache.
type Program struct {
	// Key is the program's key in hexadecimal digits.
	Key string
	// Size is the size of its file.
	Size int64
	// Used is when it was stored or last loaded.
	Used time.Time
	path string
}

// Programs returns the entries of the cache, the most recently used one first.
func (c *Cache) Programs() ([]Program, error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the compile cache: %w", err)
	}
	var all []Program
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), ending)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was just removed.
		}
		if err != nil {
			return nil, fmt.Errorf("list the compile cache: %w", err)
		}
		all = append(all, Program{Key: key, Size: info.Size(), Used: info.ModTime(), path: filepath.Join(c.dir, e.Name())})
	}
	slices.SortFunc(all, func(a, b Program) int { return cmp.Or(b.Used.Compare(a.Used), strings.Compare(a.Key, b.Key)) })
	return all, nil
}
