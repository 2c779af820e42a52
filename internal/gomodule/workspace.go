package gomodule

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// LocalVersion is the version of a module that only a replacement provides.
const LocalVersion = "v0.0.0-00010101000000-000000000000"

// UseFolder makes mod require the module in a folder, and replaces it with the folder, as a use
// line of go.work does. It returns the module's path.
func UseFolder(mod *modfile.File, dir string) (path string, err error) {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	used, err := modfile.ParseLax(name, text, nil)
	if err != nil {
		return "", err
	}
	if used.Module == nil {
		return "", fmt.Errorf("%s: no module line", name)
	}
	path = used.Module.Mod.Path
	if !slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == path }) {
		if err := mod.AddRequire(path, LocalVersion); err != nil {
			return "", err
		}
	}
	for _, replace := range used.Replace { // They also apply in a workspace.
		to := replace.New.Path
		if replace.New.Version == "" && !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		if err := mod.AddReplace(replace.Old.Path, replace.Old.Version, to, replace.New.Version); err != nil {
			return "", err
		}
	}
	return path, mod.AddReplace(path, "", dir, "")
}
