package build

import (
	"regexp"
	"slices"
)

// unusedMark is keep.Unused.
const unusedMark = "unused "

// outside matches directives with which code outside of a program's Go source can use its
// declarations.
var outside = regexp.MustCompile(`(?m)^[ \t]*//(export|go:linkname|go:wasmexport)\s`)

// markUnused marks the hashes of the variables that neither main nor an init function nor an
// initial value can use.
func markUnused(hashes map[string]string, source string) {
	if outside.MatchString(source) {
		return
	}
	c := readCode(source, true)
	if c == nil {
		return
	}
	for name, hash := range hashes {
		if !slices.Contains(c.uses, name) {
			hashes[name] = unusedMark + hash
		}
	}
}
