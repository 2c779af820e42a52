package export

import (
	"slices"
	"strings"

	"gonbatch/internal/nbformat"
)

// SkipTags are the tags that leave a whole cell out.
var SkipTags = []string{"skip-execution", "notebook-only"}

// OnceTags are the tags of main cells whose programs run once, on the first node, instead of on
// every rank.
var OnceTags = []string{"rank-0", "one-task"}

// MayFailTag is the tag of cells that may fail: the job continues after them.
const MayFailTag = "raises-exception"

// activePrefix begins jupytext's tags for where a cell is active: active-ipynb, active-go,
// active-ipynb-go.
const activePrefix = "active-"

// activeIn is where a cell is active by jupytext's tags.
type activeIn int

const (
	everywhere activeIn = iota
	inactive
	inGo
)

// activity reads jupytext's tags of a cell.
func activity(cell *nbformat.Cell) activeIn {
	for _, tag := range cell.Tags {
		places, ok := strings.CutPrefix(tag, activePrefix)
		switch {
		case !ok:
		case slices.Contains(strings.Split(places, "-"), "go"):
			return inGo
		default:
			return inactive
		}
	}
	return everywhere
}

// Skips reports whether a tag of the cell leaves it out of a job.
func Skips(cell *nbformat.Cell) bool {
	return slices.ContainsFunc(SkipTags, cell.HasTag) || activity(cell) == inactive
}

// isCode reports whether a cell is code: a code cell, or a raw cell that is active in Go.
func isCode(cell *cellInfo) bool {
	return cell.Type == nbformat.Code || cell.Type == nbformat.Raw && activity(cell.Cell) == inGo
}
