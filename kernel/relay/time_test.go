package relay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonbatch/kernel/build"
)

// TestPhaseTimes: the last phase is the one in which the cell ended.
func TestPhaseTimes(t *testing.T) {
	begin := time.Unix(1_000_000_000, 0)
	r := &relay{opts: Options{CellDir: t.TempDir()}}
	ends := []string{"compose 1.00 s", "compose 1.00 s, imports 1.00 s", "compose 1.00 s, imports 1.00 s, compile 1.00 s", "compose 1.00 s, imports 1.00 s, compile 1.00 s, link 1.00 s",
		"compose 1.00 s, imports 1.00 s, compile 1.00 s, link 1.00 s, run 1.00 s"}
	for i, want := range ends {
		if got := r.phaseTimes(begin, begin.Add(time.Duration(i+1)*time.Second)); got != want {
			t.Errorf("after %d phases: %s, want %s", i, got, want)
		}
		if i < len(phases) {
			file := filepath.Join(r.opts.CellDir, phases[i].file)
			if err := os.WriteFile(file, fmt.Appendln(nil, begin.Add(time.Duration(i+1)*time.Second).UnixNano()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The linker doesn't run if a test's program is up to date.
	if err := os.Remove(filepath.Join(r.opts.CellDir, build.LinkTime)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.phaseTimes(begin, begin.Add(5*time.Second)), "compose 1.00 s, imports 1.00 s, link 2.00 s, run 1.00 s"; got != want {
		t.Errorf("without the linker: %s, want %s", got, want)
	}
}
