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

// pack is a package that one of the site's own clients, such as pip, downloads into a folder.
type pack struct {
	// name is shown with the progress, typed is the command as a user would type it, and options
	// are added to it.
	name, typed string
	options     []string
	// archive is a pattern for the downloaded file, with its size (0: unknown) and its SHA-256.
	archive string
	size    int64
	sha256  string
	// extract extracts the wanted files from the archive.
	extract func(archive string) error
	// check and purge are the fixes for a client that fails, and for a wrong package.
	check, purge string
}

// get makes sure that dest and everything else that have checks are there. It blocks, and may be
// called concurrently from several goroutines and processes.
func (p pack) get(ctx context.Context, dest string, have func() bool, opts Options) error {
	return Once(ctx, dest, opts.Progress, have, func() error {
		tmp, err := scratch(dest)
		if err != nil {
			return fmt.Errorf("fetch %s: %w", dest, err)
		}
		defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
		m := newMeter(opts.Progress, p.name, p.size)
		defer m.stop()
		if err := m.command(ctx, tmp, []string{"TMPDIR=" + tmp}, append(strings.Fields(p.typed), p.options...)...); err != nil {
			return packageError(dest, p.typed, err, p.check)
		}
		archive, err := only(tmp, p.archive)
		if err == nil {
			err = Verify(archive, p.size, p.sha256)
		}
		if err == nil {
			err = p.extract(archive)
		}
		if err != nil {
			return packageError(dest, p.typed, err, p.purge)
		}
		m.at(p.size)
		m.done()
		return nil
	})
}

// scratch creates a temporary folder beside dest: on the same file system, with the space that dest
// needs. The caller holds dest's lock.
func scratch(dest string) (string, error) {
	removeStale(dest)
	return os.MkdirTemp(filepath.Dir(dest), filepath.Base(hidden(dest, ".*.dir")))
}

// removeStale removes what processes that have ended have left beside path. The caller holds its
// lock.
func removeStale(path string) {
	for _, suffix := range []string{".*.dir", ".*.tmp"} {
		for _, stale := range list(filepath.Dir(path), filepath.Base(hidden(path, suffix))) {
			_ = os.RemoveAll(stale) // It only takes room.
		}
	}
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

// list returns the paths in dir whose names match. Unlike filepath.Glob, it takes dir literally.
func list(dir, pattern string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// command runs a package client, and shows the size of the files below dir, because without a
// terminal the client shows nothing.
func (m *meter) command(ctx context.Context, dir string, env []string, args ...string) error {
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
					n = min(n, m.of) // The package is copied before it is moved.
				}
				m.at(n)
			}
		}
	}()
	defer func() { close(quit); <-done }()
	return command(ctx, dir, env, args...)
}

// usage returns the total size of the files below dir, except those that are removed meanwhile.
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
