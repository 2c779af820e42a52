package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
	"gonbatch/internal/sharedlib"
)

// way is one way to get a plugin.
type way struct {
	version string // version is part of the folder's name.
	what    string // what the user sees: an address or a command.
	sub     string // sub is the subfolder of the version's folder that has the library; mostly empty.
	// get writes the library to path, in a folder that exists.
	get func(ctx context.Context, path string, opts Options) error
}

func (w way) dir(opts Options) string {
	return filepath.Join(opts.Dir, opts.Platform+"-"+w.version, w.sub)
}

// ways lists the ways in the order in which to try them; it is a variable so that tests can work
// without a network.
var ways = map[string][]way{
	CPU:  {release, wheel},
	CUDA: {nvidia},
}

// installDirs lists the folders in which install may have put the plugin.
func installDirs(opts Options) []string {
	var dirs []string
	for _, w := range ways[opts.Platform] {
		dirs = append(dirs, w.dir(opts))
	}
	return dirs
}

// install tries all ways. The caller holds the lock.
func install(ctx context.Context, opts Options) (dir string, err error) {
	failed := &fetch.Error{
		Name: "XLA's plugin " + FileName(opts.Platform),
		Path: filepath.Join(opts.Dir, opts.Platform+"-*"),
		Fix: fmt.Sprintf("on a machine with network let gonbatch install it, copy %s here, and set %s to the folder below it that has %s; "+
			"or let HTTPS_PROXY or pip's index-url point to what this site has", opts.Dir, rundir.EnvPluginDir, FileName(opts.Platform)),
	}
	for _, w := range ways[opts.Platform] {
		err := w.install(ctx, opts)
		if err == nil {
			return w.dir(opts), nil
		}
		if ctx.Err() != nil {
			return "", err
		}
		tries := fetch.Tries(w.what, err)
		failed.Tries = append(failed.Tries, tries...)
		if opts.Progress != nil {
			fmt.Fprintf(opts.Progress, "plugin: %s: %v\n", w.what, tries[len(tries)-1].Err)
		}
	}
	return "", failed
}

// install installs the platform's plugin.
func (w way) install(ctx context.Context, opts Options) error {
	return w.installAs(ctx, opts, FileName(opts.Platform), entry)
}

// installAs gets the library under another name, checks that it has the symbol, and only then
// renames it: no process finds an unchecked library.
func (w way) installAs(ctx context.Context, opts Options, name string, symbol sharedlib.Symbol) error {
	dir := w.dir(opts)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	final := filepath.Join(dir, name)
	raw := filepath.Join(dir, "unchecked.so")
	if err := os.RemoveAll(raw); err != nil {
		return err
	}
	if err := w.get(ctx, raw, opts); err != nil {
		return err
	}
	if err := sharedlib.Check(raw, symbol); err != nil {
		return errors.Join(err, os.Remove(raw))
	}
	// Run directories have links to it: writing to one of them would change all.
	if err := os.Chmod(raw, 0o444); err != nil {
		return err
	}
	return os.Rename(raw, final)
}

// The wheel by XLA's authors (PJRT API 0.81). It is built for glibc 2.27, so it also works on old
// clusters.
var cpuWheel = fetch.Wheel{
	Requirement: "xla-cpu-pjrt==0.0.1",
	SHA256:      "55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc",
	Size:        63461052,
	Member:      "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
}

// wheel gets the CPU plugin through the site's pip.
var wheel = byPip("wheel-0.0.1", cpuWheel)

// byPip gets a library of a wheel through the site's pip.
func byPip(version string, w fetch.Wheel) way {
	return way{version: version, what: w.Command(), get: func(ctx context.Context, path string, opts Options) error {
		return fetch.PipWheel(ctx, w, path, fetch.Options{Progress: opts.Progress})
	}}
}
