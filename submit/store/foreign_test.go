package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

// TestPlantedStore: a link that another user has put in the place of the store neither loses the
// files to which it leads nor gets any.
func TestPlantedStore(t *testing.T) {
	root, precious, source := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "program")
	thesis := filepath.Join(precious, "thesis")
	for path, size := range map[string]int64{thesis: 10, source: 2 << 20} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(precious, rundir.Store(root, os.Geteuid())); err != nil {
		t.Fatal(err)
	}
	s := In(root, t.TempDir())
	if err := s.Clean(time.Now().Add(48 * time.Hour)); err == nil {
		t.Error("the store is cleaned")
	}
	s.MakeRoom(time.Now().Add(48 * time.Hour))
	to := filepath.Join(root, "copy")
	if err := s.Keep(source, to); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Size() != 2<<20 {
		t.Errorf("%v, %v", info, err)
	}
	entries, err := os.ReadDir(precious)
	if err != nil || len(entries) != 1 || entries[0].Name() != "thesis" {
		t.Errorf("in the folder of the link: %v, %v", entries, err)
	}
}
