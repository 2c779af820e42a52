package build

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

func TestPrune(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	build := func(i int) string { return fmt.Sprintf("%032x", i) }
	make := func(name string, age time.Duration) {
		t.Helper()
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "train"), []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := touch(dir, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		make(build(i), time.Duration(i)*time.Hour)
	}
	make("mine", 1000*time.Hour)
	make(".new-killed", 25*time.Hour)
	make(".new-running", time.Hour)
	held := flock.New(filepath.Join(root, build(3)+".lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := held.Unlock(); err != nil {
			t.Error(err)
		}
	})
	if err := touch(filepath.Join(root, build(4)), now); err != nil {
		t.Fatal(err)
	}
	if err := prune(root, 2, now); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	// The newest, the one that another process has locked, the one just used, and a file that is
	// not ours.
	want := []string{".new-running", build(0), build(3), build(3) + ".lock", build(4), "mine"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
