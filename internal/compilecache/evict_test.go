package compilecache_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gonbatch/internal/compilecache"
)

// TestEviction: the cache stays near its limit by itself, and keeps recently used programs.
func TestEviction(t *testing.T) {
	const limit = 100_000
	c := open(t, t.TempDir(), limit)
	for n := range 60 {
		wantCompiled(t, c, n, true)
		wantCompiled(t, c, n, false)
		all, err := c.Programs()
		if err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, p := range all {
			size += p.Size
		}
		if size > limit+limit/32 {
			t.Errorf("%d bytes after program %d, the limit is %d", size, n, limit)
		}
		if len(all) > 0 && all[0].Key != keyOf(n).String() {
			t.Errorf("program %d is not the last used one", n)
		}
	}
}

// TestLeftovers: files left by killed processes are removed once they are old.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, compilecache.Limit)
	wantCompiled(t, c, 1, true)
	lock := keyOf(1).String() + ".lock"
	names := []string{".new-123", lock, lock + ".ABC", "." + lock + ".456"}
	for i, name := range slices.Concat(names, []string{".new-young", "notes.txt"}) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if old := time.Now().Add(-48 * time.Hour); i < len(names) || name == "notes.txt" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if removed, err := c.Prune(compilecache.Limit); err != nil || len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	var left []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".new-young", ".swept", keyOf(1).String() + ".program", "notes.txt"}; !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}
