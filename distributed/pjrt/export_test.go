package pjrt

import (
	"regexp"

	"github.com/gomlx/compute"
)

// Placeholder is the pattern that finds placeholders in programs.
func Placeholder() string { return placeholder.String() }

// SetPlaceholder makes the pattern another one, as if go-xla wrote programs in another form, before
// or after the backend was probed.
func SetPlaceholder(pattern string, before bool) {
	placeholder = regexp.MustCompile(pattern)
	if before {
		probed = map[compute.Backend]bool{}
	}
}

// SetRanks makes the number of ranks another one.
func SetRanks(n int) { ranks = n }

// FileFacts, Unkeepable and Canonical are parts of a key.
var (
	Canonical  = canonical
	FileFacts  = fileFacts
	Unkeepable = unkeepable
)
