package checkpoint

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed is how many variables of each kind an error names.
const maxNamed = 5

// Difference is a variable that differs between the checkpoint and the model.
type Difference struct {
	// Path is the variable's path.
	Path string
	// Checkpoint and Model are its type and shape in each.
	Checkpoint, Model string
}

// MismatchError reports that a checkpoint belongs to another model.
type MismatchError struct {
	// Checkpoint is the checkpoint's path.
	Checkpoint string
	// Different lists variables with another type or shape.
	Different []Difference
	// Missing lists variables of the model that the checkpoint doesn't have.
	Missing []string
	// Unused lists variables of the checkpoint that the model doesn't have.
	Unused []string
}

// Error names the first variables of each kind.
func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "checkpoint: %s belongs to a different model:", e.Checkpoint)
	var different []string
	for _, d := range e.Different {
		different = append(different, fmt.Sprintf("%s is %s there, %s here", d.Path, d.Checkpoint, d.Model))
	}
	section(&b, "with another type or shape", different)
	section(&b, "only in the model", e.Missing)
	section(&b, "only in the checkpoint", e.Unused)
	b.WriteString("\n  use the model that wrote it, or start again in another folder")
	return b.String()
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n  %s:", title)
	for _, line := range lines[:min(len(lines), maxNamed)] {
		fmt.Fprintf(b, "\n    %s", line)
	}
	if more := len(lines) - maxNamed; more > 0 {
		fmt.Fprintf(b, "\n    and %d more", more)
	}
}

// orNil sorts the differences, and returns nil if there are none.
func (e *MismatchError) orNil() error {
	if len(e.Different)+len(e.Missing)+len(e.Unused) == 0 {
		return nil
	}
	slices.SortFunc(e.Different, func(a, b Difference) int { return modelFirst(a.Path, b.Path) })
	slices.SortFunc(e.Missing, modelFirst)
	slices.SortFunc(e.Unused, modelFirst)
	return e
}

// modelFirst compares paths so that the model's, which explain the optimizer's, come first.
func modelFirst(a, b string) int {
	aTraining, bTraining := OnlyTraining(a), OnlyTraining(b)
	switch {
	case aTraining && !bTraining:
		return 1
	case !aTraining && bTraining:
		return -1
	}
	return strings.Compare(a, b)
}
