package gomodule

import (
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// OwnPath is the path of gonbatch's own module.
const OwnPath = "gonbatch"

// IsOwn reports whether a package belongs to gonbatch.
func IsOwn(path string) bool { return within(path, OwnPath) }

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
