// Package nearest finds what a misspelled word was meant to be.
package nearest

import (
	"slices"

	"github.com/agnivade/levenshtein"
)

// mostEdits is the maximum distance between a misspelled word and the intended one.
const mostEdits = 2

// Words returns the words that are nearest to a misspelled one, by at most two edits, sorted. A
// word that shares no character with it is not near.
func Words(name string, words []string) []string {
	best, found := mostEdits+1, []string(nil)
	for _, word := range words {
		d := levenshtein.ComputeDistance(name, word)
		if d >= len(name) {
			continue
		}
		if d < best {
			best, found = d, nil
		}
		if d == best && d <= mostEdits {
			found = append(found, word)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
