package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/tests/tmpfs"
)

// bigFile creates a file that is big enough to be shared.
func bigFile(t *testing.T, fill byte, perm os.FileMode) string {
	t.Helper()
	data := make([]byte, 2*storedSize)
	for i := range data {
		data[i] = fill
	}
	path := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(path, data, perm); err != nil {
		t.Fatal(err)
	}
	return path
}

// inode returns a file's inode number and its number of links.
func inode(t *testing.T, path string) (number uint64, links int) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Ino, int(stat.Nlink)
}

// TestStoreShares: however many runs on another file system need a file, even concurrently, it is
// there once; the runs fit into a file system without room for two copies.
func TestStoreShares(t *testing.T) {
	cache := t.TempDir()
	root := filepath.Join(t.TempDir(), "runs")
	tmpfs.Mount(t, root, "size=40m")
	program, other := bigFile(t, 1, 0o755), bigFile(t, 2, 0o644)
	const runs = 12
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			dir := rundir.At(filepath.Join(root, fmt.Sprint("run-", i)))
			if err := os.Mkdir(dir.Path(), 0o755); err != nil {
				t.Error(err)
			}
			for name, from := range map[string]string{"program": program, "other": other} {
				if err := In(dir.Root(), cache).Link(from, filepath.Join(dir.Path(), name)); err != nil {
					t.Error(err)
				}
			}
			if err := In(dir.Root(), cache).Clean(time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for name, perm := range map[string]os.FileMode{"program": 0o555, "other": 0o444} {
		first, links := inode(t, filepath.Join(root, "run-0", name))
		for i := range runs {
			path := filepath.Join(root, fmt.Sprint("run-", i), name)
			info, err := os.Stat(path)
			if n, _ := inode(t, path); n != first || err != nil || info.Mode().Perm() != perm || info.Size() != 2*storedSize {
				t.Errorf("%s is a file of its own, or another: %v, %v", path, info, err)
			}
		}
		if links != runs+1 {
			t.Errorf("%s has %d names, want one for each of %d runs and one in the store", name, links, runs)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(rundir.Store(root, os.Geteuid()), "new-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestStoreIsCleaned: a file that no run has any longer is removed after a day, and a later run
// adds it again.
func TestStoreIsCleaned(t *testing.T) {
	cache := t.TempDir()
	root := filepath.Join(t.TempDir(), "runs")
	tmpfs.Mount(t, root, "size=40m")
	file, s := bigFile(t, 1, 0o755), Store{filepath.Join(root, ".store"), cache}
	entries := func() int {
		list, err := os.ReadDir(s.folder)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	clean := func(after time.Duration) {
		if err := s.Clean(time.Now().Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		to := filepath.Join(root, fmt.Sprint("to-", i))
		if err := s.Link(file, to); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(s.folder, "new-1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if clean(2 * storeAge); entries() != 1 {
			t.Error("a file that a run has is gone, or what a killed process left is not")
		}
		if err := os.Remove(to); err != nil {
			t.Fatal(err)
		}
		if clean(0); entries() != 1 {
			t.Error("a file that a run had just now is gone")
		}
		if clean(2 * storeAge); entries() != 0 {
			t.Error("a file that no run has is still there")
		}
	}
}

// TestStoreReplacesADamagedFile: no run gets a damaged file.
func TestStoreReplacesADamagedFile(t *testing.T) {
	cache := t.TempDir()
	root := filepath.Join(t.TempDir(), "runs")
	tmpfs.Mount(t, root, "size=40m")
	file, s := bigFile(t, 1, 0o755), Store{filepath.Join(root, ".store"), cache}
	if err := s.Link(file, filepath.Join(root, "one")); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(s.folder, "*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("%q, %v", list, err)
	}
	if err := os.Remove(list[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list[0], []byte("half"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Link(file, filepath.Join(root, "two")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "two")); err != nil || info.Size() != 2*storedSize {
		t.Errorf("%v, %v", info, err)
	}
}

// TestStoreChecksItsFiles: no run gets a file that something has written into, even if its size is
// right.
func TestStoreChecksItsFiles(t *testing.T) {
	cache := t.TempDir()
	root := filepath.Join(t.TempDir(), "runs")
	tmpfs.Mount(t, root, "size=40m")
	file, s := bigFile(t, 1, 0o755), Store{filepath.Join(root, ".store"), cache}
	one, two := filepath.Join(root, "one"), filepath.Join(root, "two")
	if err := s.Link(file, one); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(one, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(one, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("changed"), 2000)
	}
	if err != nil || f.Close() != nil || os.Chmod(one, 0o555) != nil {
		t.Fatal(err)
	}
	if err := s.Link(file, two); err != nil {
		t.Fatal(err)
	}
	want, err := HashFile(file)
	if got, _ := HashFile(two); got != want || err != nil {
		t.Errorf("the second run has the file that was written into: %v", err)
	}
}

// TestStoreMakesRoom: on a full disk, files that no run has are removed at once, and the others
// stay.
func TestStoreMakesRoom(t *testing.T) {
	cache := t.TempDir()
	root := filepath.Join(t.TempDir(), "runs")
	tmpfs.Mount(t, root, "size=40m")
	s := Store{filepath.Join(root, ".store"), cache}
	for i := range 2 {
		if err := s.Link(bigFile(t, byte(i), 0o755), filepath.Join(root, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if s.MakeRoom(time.Now()) {
		t.Error("it says that there is room, and both files are in use")
	}
	if err := os.Remove(filepath.Join(root, "0")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if got := s.MakeRoom(time.Now()); got != want {
			t.Errorf("made room: %v, want %v", got, want)
		}
	}
	err := s.FullError(syscall.ENOSPC)
	for _, want := range []string{s.folder, "2 MB", "--run-root"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
