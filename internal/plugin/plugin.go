// Package plugin finds XLA's PJRT plugin, the shared library that compiles and runs GoMLX's graphs,
// and installs it on first use. For CPUs it also installs oneDNN, whose kernels are faster.
//
// It does not load the plugin, and it links no C, so a submit command can use it on a login node.
// How a rank uses the folder is up to go-xla.
//
//	dir, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CPU, Progress: os.Stderr, Getenv: os.Getenv})
//	// dir has pjrt_c_api_cpu_plugin.so
//
// # Where it looks
//
//  1. GONBATCH_PLUGIN_DIR. If it is set, it must have the plugin: nothing else is tried.
//  2. PJRT_PLUGIN_LIBRARY_PATH, go-xla's own list of folders.
//  3. The user's cache, gonbatch/plugins/<platform>-<version>.
//  4. go-xla's standard folders, ~/.local/lib/go-xla and /usr/local/lib/go-xla.
//
// # Where it installs from
//
// For CPUs, it installs the release that go-xla v0.4.5 itself installs. If that is unreachable or
// does not fit the machine, it installs a wheel through the site's pip, pinned by SHA-256. The
// release has no checksum that could be pinned here: the checksum published on the release page is
// checked if its API responds. In both cases the library must be for this architecture, need no
// newer glibc than this machine has, and export GetPjrtApi.
//
// For CUDA, on linux/amd64, it installs the wheel that go-xla's installer uses, and NVIDIA's
// libraries (2.3 GB of downloads, 3.8 GB installed), all through the site's pip and pinned by
// SHA-256. They find one another by relative paths: use the CUDA plugin where it is, and never copy
// the file alone.
package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
	"gonbatch/internal/sharedlib"
	"gonbatch/internal/userdir"
)

// The platforms that have a plugin.
const (
	CPU  = "cpu"
	CUDA = "cuda"
)

// Options configure the search and the installation. The zero value means the CPU plugin in the
// usual places, silently.
type Options struct {
	Platform string              // Platform is CPU or CUDA; empty: CPU.
	Dir      string              // Dir has one folder for each installed plugin; empty: gonbatch/plugins in the user's cache.
	Progress io.Writer           // Progress of an installation; nil: silent.
	Getenv   func(string) string // Getenv; nil: os.Getenv.
}

func (o Options) withDefaults() (Options, error) {
	if o.Platform == "" {
		o.Platform = CPU
	}
	if o.Platform != CPU && o.Platform != CUDA {
		return o, fmt.Errorf("plugin: unknown platform %q; use %q or %q", o.Platform, CPU, CUDA)
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Dir != "" {
		return o, nil
	}
	dir, err := userdir.Cache(o.Getenv, "plugins")
	o.Dir = dir
	return o, err
}

// FileName returns the file name that go-xla looks for.
func FileName(platform string) string { return "pjrt_c_api_" + platform + "_plugin.so" }

// Ensure returns a folder that has FileName(opts.Platform), and installs the plugin first if none
// is found. The file may be a link. Ensure blocks while it installs; it may be called concurrently
// from several goroutines and processes: one installs, the others wait. If the plugin is there, it
// takes well under a millisecond.
func Ensure(ctx context.Context, opts Options) (dir string, err error) {
	opts, err = opts.withDefaults()
	if err != nil {
		return "", err
	}
	p, findErr := find(opts)
	if findErr != nil && opts.Getenv(rundir.EnvPluginDir) != "" {
		return "", findErr
	}
	have := func() bool {
		p, findErr = find(opts)
		return findErr == nil
	}
	err = fetch.Once(ctx, filepath.Join(opts.Dir, opts.Platform), opts.Progress, have, func() error {
		dir, err = install(ctx, opts)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("plugin: %w", err)
	}
	if findErr == nil {
		return named(p, opts)
	}
	return dir, nil
}

// named returns a folder in which p has the name without a version: p's own, or one with a link to
// it.
func named(p Plugin, opts Options) (string, error) {
	name := FileName(opts.Platform)
	if filepath.Base(p.Path) == name {
		return filepath.Dir(p.Path), nil
	}
	dir := filepath.Join(opts.Dir, opts.Platform+"-"+p.Version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("plugin: %w", err)
	}
	link := filepath.Join(dir, name)
	tmp, err := os.MkdirTemp(dir, ".link")
	if err != nil {
		return "", fmt.Errorf("plugin: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	if err := os.Symlink(p.Path, filepath.Join(tmp, name)); err != nil {
		return "", fmt.Errorf("plugin: %w", err)
	}
	if err := os.Rename(filepath.Join(tmp, name), link); err != nil {
		return "", fmt.Errorf("plugin: %w", err)
	}
	return dir, nil
}

// entry is the function that makes a library a PJRT plugin.
var entry = sharedlib.Has("GetPjrtApi", "a PJRT plugin")
