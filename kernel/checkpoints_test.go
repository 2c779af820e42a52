package kernel

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPruneTrainings(t *testing.T) {
	store, now := t.TempDir(), time.Now()
	for name, age := range map[string]time.Duration{"old": 2 * keptTrainings, "new": time.Hour, "used": 2 * keptTrainings} {
		dir := filepath.Join(store, name, "main", "step-1")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for dir != store {
			if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
				t.Fatal(err)
			}
			dir = filepath.Dir(dir)
		}
	}
	if err := os.Chtimes(filepath.Join(store, "used", "main"), now, now); err != nil {
		t.Fatal(err)
	}
	if err := pruneTrainings(store, now); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"old": false, "new": true, "used": true} {
		if _, err := os.Stat(filepath.Join(store, name)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
	if err := pruneTrainings(filepath.Join(store, "none"), now); err != nil {
		t.Error(err)
	}
}
