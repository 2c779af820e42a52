package gomodule

import (
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// OwnPath is the path of gonbatch's own module.
const OwnPath = "gonbatch"

// IsOwn reports whether a package belongs to gonbatch.
func IsOwn(path string) bool { return within(path, OwnPath) }

// IsPlain reports whether programs with these imports have a go.mod of their own, as in GoNB: they
// import nothing of gonbatch, but a package of a module that own, gonbatch's own go.mod, lacks.
// Such a go.mod requires gonbatch's version of each module that a program imports, but nothing that
// only gonbatch itself needs, which another module may be too old for. imports has no package of
// the standard library.
func IsPlain(own *modfile.File, imports []string) bool {
	return !slices.ContainsFunc(imports, IsOwn) &&
		slices.ContainsFunc(imports, func(path string) bool { return Containing(own, path).Path == "" })
}

// RequireOwn makes mod require gonbatch's version of each module that programs import, unless the
// notebook has chosen another one. It skips modules in done, and adds those that it has seen.
func RequireOwn(mod, own *modfile.File, imports []string, done map[string]bool) error {
	for _, path := range imports {
		in := Containing(own, path)
		if in.Path == "" || in.Path == OwnPath || done[in.Path] {
			continue
		}
		done[in.Path] = true
		at := slices.IndexFunc(mod.Require, func(have *modfile.Require) bool { return have.Mod.Path == in.Path })
		if at >= 0 && (!mod.Require[at].Indirect || semver.Compare(mod.Require[at].Mod.Version, in.Version) >= 0) {
			continue
		}
		if err := mod.AddRequire(in.Path, in.Version); err != nil {
			return err
		}
	}
	return nil
}

// Containing returns the required module whose path is the longest prefix of a package's path; zero
// if there is none.
func Containing(mod *modfile.File, path string) (best module.Version) {
	for _, r := range mod.Require {
		if p := r.Mod.Path; within(path, p) && len(p) > len(best.Path) {
			best = r.Mod
		}
	}
	return best
}

// JoinSums returns the lines of two go.sum files, sorted.
func JoinSums(a, b []byte) []byte {
	lines := slices.Sorted(strings.Lines(string(a) + string(b)))
	return []byte(strings.Join(slices.Compact(lines), ""))
}

// within reports whether a package belongs to a module, or to one nested in it.
func within(path, module string) bool { return path == module || strings.HasPrefix(path, module+"/") }
