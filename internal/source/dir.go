package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gonbatch"
	"gonbatch/internal/rundir"
)

// Options say where the source comes from and where it goes. The zero value means the embedded
// source in the user's cache.
type Options struct {
	// Getenv reads the environment; nil means an empty one.
	Getenv func(string) string
	// CacheDir is the folder to write to; empty means gonbatch's folder in the user's cache.
	CacheDir string
	// Library is the source; nil means the embedded one.
	Library fs.FS
}

// Dir writes to <cache>/<folder>/<the hash's first nameLength digits>.
const (
	folder     = "source"
	nameLength = 16
)

// Dir returns the folder with gonbatch's source. The first call writes it, to source/<hash> in the
// cache; later calls find it. Concurrent calls, even from several processes, are safe: the folder
// appears complete or not at all.
func Dir(ctx context.Context, opt Options) (string, error) {
	if opt.Getenv != nil {
		if dir := opt.Getenv(rundir.EnvSource); dir != "" {
			return checkout(dir)
		}
	}
	if opt.Library == nil {
		opt.Library = gonbatch.Library
	}
	if opt.CacheDir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("gonbatch's source: no cache folder: %w; set HOME or XDG_CACHE_HOME", err)
		}
		opt.CacheDir = filepath.Join(cache, "gonbatch")
	}
	hash, err := Hash(opt.Library)
	if err != nil {
		return "", fmt.Errorf("gonbatch's source: %w", err)
	}
	dir := filepath.Join(opt.CacheDir, folder, hash[:nameLength])
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return dir, nil
	}
	if err := write(ctx, opt.Library, dir); err != nil {
		return "", fmt.Errorf("gonbatch's source in %s: %w", dir, err)
	}
	return dir, nil
}

// checkout checks that dir is a checkout of gonbatch.
func checkout(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s=%q: %w", rundir.EnvSource, dir, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("%s=%q is not gonbatch's source: %w", rundir.EnvSource, dir, err)
	}
	if first, _, _ := strings.Cut(string(data), "\n"); strings.TrimSpace(first) != "module gonbatch" {
		return "", fmt.Errorf("%s=%q is not gonbatch's source: its go.mod begins with %q, want \"module gonbatch\"", rundir.EnvSource, dir, first)
	}
	return dir, nil
}

// write copies the library to a folder next to dir and renames it to dir. Another process may be
// first: then its folder is as good as ours.
func write(ctx context.Context, library fs.FS, dir string) (err error) {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, ".new-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	root := filepath.Join(tmp, "gonbatch")
	if err := copyFiles(ctx, library, root); err != nil {
		return err
	}
	if err := os.Rename(root, dir); err != nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return nil
		}
		return err
	}
	return nil
}

// copyFiles copies the library's files as read-only files.
func copyFiles(ctx context.Context, library fs.FS, root string) error {
	names, err := files(library)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := fs.ReadFile(library, name)
		if err != nil {
			return err
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o444); err != nil {
			return err
		}
	}
	return nil
}
