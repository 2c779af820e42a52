package modules

import (
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"gonbatch/submit/export/gomod"
)

// takeDownloaded requires the newest version of a package's module in the module cache. It reports
// whether it did.
func (r *resolver) takeDownloaded(importPath string) (bool, error) {
	newest := newestDownloaded(r.ModuleCache, importPath)
	if newest.Path == "" {
		return false, nil
	}
	if mod, err := r.goMod(); err != nil || versions(mod)[newest.Path] != "" {
		return false, err
	}
	r.why[newest.Path] = "the newest of those that were downloaded before"
	return true, r.edit(func(mod *modfile.File) error { return mod.AddRequire(newest.Path, newest.Version) })
}

// newestDownloaded returns the module with the longest path that contains a package, in its newest
// version in the module cache. As for the go command, a release is newer than anything else.
func newestDownloaded(cache, importPath string) (newest module.Version) {
	for in := importPath; strings.Contains(in, "/"); in = path.Dir(in) {
		escaped, err := module.EscapePath(in)
		if err != nil {
			continue
		}
		zips, _ := filepath.Glob(filepath.Join(cache, "cache", "download", escaped, "@v", "*.zip"))
		for _, zip := range zips {
			name := strings.TrimSuffix(filepath.Base(zip), ".zip")
			version, err := module.UnescapeVersion(name)
			if err != nil || gomod.PackageIn(filepath.Join(cache, escaped+"@"+name, strings.TrimPrefix(importPath, in))) == "" {
				continue
			}
			if newest.Path == "" || newer(version, newest.Version) {
				newest = module.Version{Path: in, Version: version}
			}
		}
		if newest.Path != "" {
			return newest
		}
	}
	return newest
}

// newer reports whether the go command prefers version a to b.
func newer(a, b string) bool {
	if releaseA, releaseB := semver.Prerelease(a) == "", semver.Prerelease(b) == ""; releaseA != releaseB {
		return releaseA
	}
	return semver.Compare(a, b) > 0
}
