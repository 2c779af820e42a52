package build

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gonbatch/tests/tmpfs"
)

// TestChangedProgram: a program that something has written into is not used again, even if its size
// is the same.
func TestChangedProgram(t *testing.T) {
	opt := Options{CacheDir: t.TempDir()}
	m, dir := written(t, cells("%%\nprintln(1)"))
	build := func() *Result {
		t.Helper()
		r, err := Build(context.Background(), dir, m, opt)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run(t, r, m.Cells[0]); err != nil || out != "1\n" {
			t.Errorf("got %q, %v", out, err)
		}
		return r
	}
	path := build().Programs["cell-1"]
	if info, err := os.Stat(path); err != nil || info.Mode() != programMode {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(link, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(link, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("changed"), 2000)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	again := build()
	if again.Cached || !slices.Equal(again.Changed, []string{"cell-1"}) {
		t.Errorf("cached %v, changed %q", again.Cached, again.Changed)
	}
	if last := build(); !last.Cached || len(last.Changed) > 0 || last.Sums["cell-1"] != again.Sums["cell-1"] {
		t.Errorf("%+v", last)
	}
}

// TestFullDisk: programs that no run links to make room for a new one; else the error says what
// would.
func TestFullDisk(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	tmpfs.Mount(t, cache, "size=40m")
	build := func(source string) (*Result, error) {
		m, dir := written(t, cells(source))
		return Build(context.Background(), dir, m, Options{CacheDir: cache})
	}
	first, err := build("%%\nprintln(1)")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(cache, "filler"))
	second, err := build("%%\nprintln(2)")
	if err != nil {
		t.Fatalf("with room by the first program: %v", err)
	}
	if _, err := os.Stat(first.Dir); err == nil {
		t.Error("the first program is still there")
	}
	if err := os.Link(second.Programs["cell-1"], filepath.Join(cache, "run")); err != nil {
		t.Fatal(err)
	}
	_, err = build("%%\nprintln(3)")
	if err == nil {
		t.Fatal("there was room for a third program")
	}
	for _, want := range []string{syscall.ENOSPC.Error(), filepath.Join(cache, "build"), " MB", "remove old run directories"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if _, err := os.Stat(second.Dir); err != nil {
		t.Errorf("a program that a run refers to: %v", err)
	}
}

// fill leaves less room in path's file system than a program needs.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()-256<<10) // For small files and folders.
	}
	if err != nil {
		t.Fatal(err)
	}
}
