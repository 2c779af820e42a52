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

// ShareMemory marks the parameters of a program that results may have the memory of.
var ShareMemory = shareMemory

// SetShare has another function do that for all programs, until the function that it returns is
// called.
func SetShare(other func(string) (string, int)) (reset func()) {
	share = other
	return func() { share = shareMemory }
}

// FileFacts, Unkeepable and Canonical are parts of a key.
var (
	Canonical  = canonical
	FileFacts  = fileFacts
	Unkeepable = unkeepable
)
