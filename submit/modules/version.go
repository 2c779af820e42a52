package modules

import (
	"errors"
	"maps"
	"slices"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"gonbatch/internal/gomodule"
)

// versions returns the versions that a go.mod requires, by path.
func versions(mod *modfile.File) map[string]string {
	all := map[string]string{}
	for _, r := range mod.Require {
		all[r.Mod.Path] = r.Mod.Version
	}
	return all
}

// replacements returns the folders and modules that replace others, by path.
func replacements(mod *modfile.File) map[string]string {
	all := map[string]string{}
	for _, r := range mod.Replace {
		if r.Old.Path != gomodule.OwnPath {
			all[r.Old.Path] = r.New.String()
		}
	}
	return all
}

// raise makes mod require at least the versions in from, and calls raised for each module that this
// changes. It skips modules that from replaces: they may exist nowhere else.
func raise(mod, from *modfile.File, raised func(path string)) error {
	have, replaced := versions(mod), replacements(from)
	for _, r := range from.Require {
		path, version := r.Mod.Path, r.Mod.Version
		if _, ok := replaced[path]; ok || path == gomodule.OwnPath || have[path] != "" && semver.Compare(version, have[path]) <= 0 {
			continue
		}
		if err := mod.AddRequire(path, version); err != nil {
			return err
		}
		raised(path)
	}
	return nil
}

// diff is the difference between a go.mod and gonbatch's own.
type diff struct {
	// mod has the replacements, and the requirements that gonbatch's own lacks or has in another
	// version; dropped are the modules that only gonbatch's own requires.
	mod     *modfile.File
	dropped []string
}

// difference returns the difference of mod from own.
func difference(mod, own *modfile.File) (diff, error) {
	had, has := versions(own), versions(mod)
	d := diff{mod: new(modfile.File)}
	if err := d.mod.AddModuleStmt(mod.Module.Mod.Path); err != nil {
		return d, err
	}
	if mod.Go != nil {
		if err := d.mod.AddGoStmt(mod.Go.Version); err != nil {
			return d, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(has)) {
		if has[path] != had[path] {
			d.mod.AddNewRequire(path, has[path], false)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(had)) {
		if has[path] == "" {
			d.dropped = append(d.dropped, path)
		}
	}
	for _, r := range mod.Replace {
		if r.Old.Path == gomodule.OwnPath {
			continue
		}
		if err := d.mod.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, r.New.Version); err != nil {
			return d, err
		}
	}
	d.mod.Cleanup()
	return d, nil
}

// isNone reports whether there is no difference.
func (d diff) isNone() bool {
	return len(d.mod.Require) == 0 && len(d.mod.Replace) == 0 && len(d.dropped) == 0
}

// apply returns the text of own with the difference applied.
func (d diff) apply(own *modfile.File) ([]byte, error) {
	mod, err := modfile.Parse("go.mod", modfile.Format(own.Syntax), nil)
	if err != nil {
		return nil, err
	}
	if d.mod.Go != nil {
		err = mod.AddGoStmt(d.mod.Go.Version)
	}
	for _, path := range d.dropped {
		err = errors.Join(err, mod.DropRequire(path))
	}
	mod.Cleanup()
	for _, r := range d.mod.Require {
		err = errors.Join(err, mod.AddRequire(r.Mod.Path, r.Mod.Version))
	}
	for _, r := range d.mod.Replace {
		err = errors.Join(err, mod.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, r.New.Version))
	}
	if err != nil {
		return nil, err
	}
	mod.Cleanup()
	mod.SetRequireSeparateIndirect(mod.Require)
	mod.Cleanup()
	mod.SortBlocks()
	return mod.Format()
}
