package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
)

// Plugin is a plugin on this machine.
type Plugin struct {
	Platform string
	Path     string // Path of the library; it may be a link, and its name may include a version.
	Version  string // Version from the file's name; empty if the name has none.
	Origin   string // Origin says why this place was searched.
}

// Find looks for the plugin without installing it. Its error lists every place.
func Find(opts Options) (Plugin, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Plugin{}, err
	}
	return find(opts)
}

// Where returns the folder that Ensure would return, without installing anything: the one that has
// the plugin, or else the first one to install it in.
func Where(opts Options) (string, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return "", err
	}
	p, err := find(opts)
	switch {
	case err == nil:
		return filepath.Dir(p.Path), nil
	case opts.Getenv(rundir.EnvPluginDir) != "":
		return "", err
	}
	return installDirs(opts)[0], nil
}

// find is Find for complete options.
func find(opts Options) (Plugin, error) {
	all := places(opts)
	for _, at := range all {
		dir, err := filepath.Abs(at.dir) // go-xla treats a path as a name unless it is absolute.
		if err != nil {
			return Plugin{}, fmt.Errorf("plugin: %s: %w", at.dir, err)
		}
		if path, version := library(dir, opts.Platform); path != "" {
			return Plugin{Platform: opts.Platform, Path: path, Version: version, Origin: at.origin}, nil
		}
	}
	return Plugin{}, notFound(opts, all)
}

// place is a folder that may have the plugin.
type place struct{ dir, origin string }

// places lists the folders in order of precedence.
func places(opts Options) []place {
	if dir := opts.Getenv(rundir.EnvPluginDir); dir != "" {
		return []place{{dir, rundir.EnvPluginDir}}
	}
	var all []place
	for _, dir := range filepath.SplitList(opts.Getenv(rundir.EnvXLAPath)) {
		if dir != "" {
			all = append(all, place{dir, rundir.EnvXLAPath})
		}
	}
	for _, dir := range installDirs(opts) {
		all = append(all, place{dir, "installed by gonbatch"})
	}
	return append(all, standard(opts)...)
}

// standard lists go-xla's own folders.
func standard(opts Options) []place {
	roots := []string{"/usr/local/lib"}
	if home := opts.Getenv("HOME"); home != "" {
		roots = []string{filepath.Join(home, ".local", "lib"), "/usr/local/lib"}
	}
	var all []place
	for _, root := range roots {
		dir := filepath.Join(root, "go-xla")
		if opts.Platform == CUDA {
			dir = filepath.Join(dir, "nvidia") // The library finds NVIDIA's libraries next to it.
		}
		all = append(all, place{dir, "go-xla's folder"})
	}
	return all
}

// library returns the plugin in dir: the one without a version in its name, which go-xla's
// installer points at its last installation, or else the newest.
func library(dir, platform string) (path, version string) {
	plain := filepath.Join(dir, FileName(platform))
	if fetch.Have(plain, 0) {
		return plain, ""
	}
	before, after := "pjrt_c_api_"+platform+"_v", "_plugin.so"
	entries, _ := os.ReadDir(dir)
	var versions []string
	for _, e := range entries {
		v, ok := strings.CutPrefix(e.Name(), before)
		v, ok2 := strings.CutSuffix(v, after)
		if ok && ok2 && fetch.Have(filepath.Join(dir, e.Name()), 0) {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return "", ""
	}
	version = slices.MaxFunc(versions, func(a, b string) int {
		return cmp.Or(semver.Compare("v"+a, "v"+b), strings.Compare(a, b))
	})
	return filepath.Join(dir, before+version+after), version
}

func notFound(opts Options, all []place) error {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin: no %s here; looked in:", FileName(opts.Platform))
	for _, at := range all {
		fmt.Fprintf(&b, "\n  %s (%s)", at.dir, at.origin)
	}
	if opts.Getenv(rundir.EnvPluginDir) != "" {
		fmt.Fprintf(&b, "\nfix: set %s to a folder that has the file, or unset it to have the plugin installed", rundir.EnvPluginDir)
	} else {
		fmt.Fprintf(&b, "\nfix: put it into one of these, or set %s to its folder", rundir.EnvPluginDir)
	}
	return errors.New(b.String())
}
