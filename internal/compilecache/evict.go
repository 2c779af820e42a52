package compilecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// temporary begins the names of entries that are being written.
	temporary = ".new-"
	// leftover is the age at which a temporary file or a lock counts as abandoned: the holder of a
	// lock shows signs of life.
	leftover = 24 * time.Hour
	// sweepEvery is how often the size of a slowly growing cache is checked.
	sweepEvery = time.Hour
	// sweptFile is touched when a process checks the size.
	sweptFile = ".swept"
)

// grown enforces the cache's limit after a program was stored. Checking all entries is slow on NFS,
// so a process does it only when it has stored a fraction of the limit, or when no process has done
// it for a long time. Until then, the cache may exceed the limit by that fraction.
func (c *Cache) grown(by int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unswept += by
	marker := filepath.Join(c.dir, sweptFile)
	info, err := os.Stat(marker)
	if err == nil && time.Since(info.ModTime()) < sweepEvery && c.unswept < c.limit/32 {
		return
	}
	c.unswept = 0
	_ = os.WriteFile(marker, nil, 0o600) // Without it, the next process checks again.
	now := time.Now()
	_ = os.Chtimes(marker, now, now)
	_, _ = c.Prune(c.limit) // Anything that can't be removed now may be removed next time.
}

// Prune removes the least recently used programs, until the rest have at most size bytes in total,
// and files left by killed processes. It returns the removed programs. Processes that are reading
// one of them can continue.
func (c *Cache) Prune(size int64) (removed []Program, err error) {
	all, err := c.Programs()
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if size -= p.Size; size >= 0 {
			continue
		}
		switch err := os.Remove(p.path); {
		case err == nil:
			removed = append(removed, p)
		case !errors.Is(err, fs.ErrNotExist): // Another process may be removing programs too.
			return removed, fmt.Errorf("remove a program from the compile cache: %w", err)
		}
	}
	return removed, c.removeLeftovers()
}

// removeLeftovers removes temporary files and locks of processes that were killed long ago.
func (c *Cache) removeLeftovers() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && filepath.Ext(name) != lockEnding && !strings.Contains(name, lockEnding+".") || name == sweptFile {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftover {
			_ = os.Remove(filepath.Join(c.dir, e.Name())) // The next call tries again.
		}
	}
	return nil
}
