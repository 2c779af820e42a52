package gomodule

import (
	"fmt"
	"maps"
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
	used, err := readModule(dir)
	if err != nil {
		return "", err
	}
	path = used.Module.Mod.Path
	if !slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == path }) {
		if err := mod.AddRequire(path, LocalVersion); err != nil {
			return "", err
		}
	}
	for _, replace := range used.Replace { // They also apply in a workspace.
		if replace.Old.Path == OwnPath {
			continue
		}
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

// Local returns the folders, by module path, of the modules whose sources may change between two
// builds of the module in a folder: its own, and those that its go.mod or go.work take from
// folders.
func Local(dir string) (map[string]string, error) {
	mod, err := readModule(dir)
	if err != nil {
		return nil, err
	}
	folders := Folders(mod.Replace, dir)
	folders[mod.Module.Mod.Path] = dir
	name := filepath.Join(dir, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return folders, nil //nolint:nilerr // there is none
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, use := range work.Use {
		folder := absolute(use.Path, dir)
		used, err := readModule(folder)
		if err != nil {
			return nil, err
		}
		folders[used.Module.Mod.Path] = folder
	}
	maps.Copy(folders, Folders(work.Replace, dir))
	return folders, nil
}

// readModule reads the go.mod of the module in a folder.
func readModule(dir string) (*modfile.File, error) {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, text, nil)
	if err == nil && mod.Module == nil {
		err = fmt.Errorf("%s: no module line", name)
	}
	return mod, err
}

// absolute returns a path that may be relative to a folder.
func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
