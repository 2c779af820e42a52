package modules

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
)

// isPlain reports whether a notebook is plain: its go.mod is its own (see gomodule.IsPlain). A name
// without an import may be a package of gonbatch.
func (r *resolver) isPlain() bool {
	imports := slices.DeleteFunc(slices.Clone(r.first.Imports), gocell.IsStandard)
	if !gomodule.IsPlain(r.own, imports) {
		return false
	}
	for _, names := range r.first.Open {
		if slices.ContainsFunc(names, func(name string) bool {
			info, err := os.Stat(filepath.Join(r.first.SourceDir, name))
			return err == nil && info.IsDir()
		}) {
			return false
		}
	}
	return true
}

// resolvePlain resolves a plain notebook with a go.mod of its own. It returns nil if that does not
// work: gonbatch's modules were all downloaded before, so they may work without a network.
func resolvePlain(ctx context.Context, m *resolver) *Result {
	r := *m
	r.plain = true
	r.reset()
	result, err := r.resolve(ctx)
	if err != nil {
		return nil
	}
	return result
}

// startPlain removes all requirements but those of the modules that programs import.
func (r *resolver) startPlain() error {
	err := r.edit(func(mod *modfile.File) error {
		for path := range versions(mod) {
			if err := mod.DropRequire(path); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.requireOwn()
}

// requireOwn requires gonbatch's version of each module that programs import, unless the notebook
// has chosen another one.
func (r *resolver) requireOwn() error {
	return r.edit(func(mod *modfile.File) error {
		return gomodule.RequireOwn(mod, r.own, r.module.Imports, r.required)
	})
}

// earlier returns the go.mod of the lock. A plain notebook takes only the modules that it imports
// from a lock that was made with gonbatch's requirements.
func (r *resolver) earlier() *modfile.File {
	mod := *r.lock.diff.mod
	if r.plain && !r.lock.diff.isPlain() {
		mod.Require = slices.DeleteFunc(slices.Clone(mod.Require), func(require *modfile.Require) bool {
			return !r.importsFrom(&mod, require.Mod.Path)
		})
	}
	return &mod
}

// withoutOwn returns a session's go.mod without the requirements that gonbatch brought, and without
// those that follow from others.
func (r *resolver) withoutOwn(mod *modfile.File) *modfile.File {
	own, direct := versions(r.own), *mod
	direct.Require = slices.DeleteFunc(slices.Clone(mod.Require), func(require *modfile.Require) bool {
		have := own[require.Mod.Path]
		return require.Indirect || have != "" && semver.Compare(have, require.Mod.Version) >= 0
	})
	return &direct
}
