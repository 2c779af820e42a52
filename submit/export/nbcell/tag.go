package nbcell

import (
	"slices"
	"strings"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/nearest"
)

// SkipTags are the tags that leave a whole cell out.
var SkipTags = []string{"skip-execution", "notebook-only"}

// OnceTags are the tags of main cells whose programs run once, on the first node, instead of on
// every rank.
var OnceTags = []string{"rank-0", "one-task"}

// MayFailTag is the tag of cells that may fail: the job continues after them.
const MayFailTag = "raises-exception"

// ParametersTag is the tag of cells that declare parameters. InjectedTag is the tag of the cell
// with values that papermill adds.
const (
	ParametersTag = "parameters"
	InjectedTag   = "injected-parameters"
)

// activePrefix begins jupytext's tags for where a cell is active: active-ipynb, active-go,
// active-ipynb-go.
const activePrefix = "active-"

// activity reads jupytext's tags of a cell: whether it has any, and whether it is active in Go.
func activity(cell *nbformat.Cell) (tagged, inGo bool) {
	for _, tag := range cell.Tags {
		if places, ok := strings.CutPrefix(tag, activePrefix); ok {
			return true, slices.Contains(strings.Split(places, "-"), "go")
		}
	}
	return false, false
}

// Skips reports whether a tag of the cell leaves it out of a job.
func Skips(cell *nbformat.Cell) bool {
	tagged, inGo := activity(cell)
	return tagged && !inGo || slices.ContainsFunc(SkipTags, cell.HasTag)
}

// IsCode reports whether a cell is code: a code cell, or a raw cell that is active in Go.
func (c *Cell) IsCode() bool {
	_, inGo := activity(c.Cell)
	return c.Type == nbformat.Code || c.Type == nbformat.Raw && inGo
}

// HasParameters reports whether the cell declares parameters, or is papermill's with their values.
func (c *Cell) HasParameters() bool { return c.HasTag(ParametersTag) || c.HasTag(InjectedTag) }

// otherTags have a meaning for other tools.
var otherTags = []string{
	"remove-cell", "remove-input", "remove-output", "remove_cell", "remove_input", "remove_output",
	"hide-cell", "hide-input", "hide-output", "hide_input", "hide_output",
	"inactive-go", "scrolled", "nbval-ignore-output", "nbval-skip",
}

// Meant returns the tag that a misspelled one was probably meant to be, or "".
func Meant(tag string) string {
	if IsReserved(tag) {
		return ""
	}
	return strings.Join(nearest.Words(strings.ToLower(tag), slices.Concat(SkipTags, OnceTags, []string{MayFailTag, ParametersTag})), " or ")
}

// IsReserved reports whether a tag has a meaning, for a job or for another tool, so that it never
// names a cell.
func IsReserved(tag string) bool {
	return slices.Contains(SkipTags, tag) || slices.Contains(OnceTags, tag) || slices.Contains(otherTags, tag) ||
		tag == ParametersTag || tag == InjectedTag || tag == MayFailTag || strings.HasPrefix(tag, activePrefix)
}
