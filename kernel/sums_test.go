package kernel

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSums(t *testing.T) {
	dir := t.TempDir()
	cache, file := filepath.Join(dir, "sums.json"), filepath.Join(dir, "x")
	of := func(text string) string {
		t.Helper()
		if text != "" {
			if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
		sum, err := readSums(cache).of(file)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := of("one")
	if again := of(""); again != first {
		t.Errorf("unchanged: %s, then %s", first, again)
	}
	if changed := of("two"); changed == first {
		t.Errorf("changed: still %s", changed)
	}
	if back := of("one"); back != first {
		t.Errorf("the first content again: %s, want %s", back, first)
	}
	// Only what the cache knows about an unchanged file shows that it is used.
	s := readSums(cache)
	known := s.known[file]
	known.Sum = "remembered"
	s.known[file] = known
	if sum, err := s.of(file); err != nil || sum != "remembered" {
		t.Errorf("a known file: %q, %v", sum, err)
	}
	if err := os.WriteFile(cache, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if sum := of(""); sum != first {
		t.Errorf("with a damaged cache: %s, want %s", sum, first)
	}
	if _, err := readSums(cache).of(dir); err == nil {
		t.Error("a folder has a hash")
	}
}
