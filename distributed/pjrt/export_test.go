package pjrt

import (
	"regexp"

	"github.com/gomlx/compute"
)

// Placeholder is the pattern that finds placeholders in programs.
func Placeholder() string { return placeholder.String() }

// SetPlaceholder returns a function that makes the pattern another one, as if go-xla wrote programs in another form.
func SetPlaceholder(pattern string) func() (restore func()) {
	return func() func() {
		previous := placeholder
		placeholder = regexp.MustCompile(pattern)
		return func() { placeholder = previous }
	}
}

// SetRanks returns a function that makes graphs for another number of ranks than the registered one.
func SetRanks(n int) func() (restore func()) {
	return func() func() {
		previous := ranks
		ranks = n
		return func() { ranks = previous }
	}
}

// Unwrap is the backend below one of Backend.
func Unwrap(b compute.Backend) compute.Backend { return b.(*backend).Backend }
