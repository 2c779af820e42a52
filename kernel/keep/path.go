package keep

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// path is the way from a variable to a part of its value. Its text is built only for an error.
type path struct {
	// above is the path without the last step; nil for a variable.
	above *path
	// step is the name of a variable, or of a field with its dot; otherwise the last step is a
	// map's key, or the index in a list.
	step  string
	key   reflect.Value
	index int
}

// shownSteps is the number of steps shown at either end of a long path.
const shownSteps = 5

// String formats the path as an expression, as in x.Layers[2].Name, and leaves out the middle of a
// long one.
func (p *path) String() string {
	var steps []string
	for ; p != nil; p = p.above {
		steps = append(steps, p.last())
	}
	slices.Reverse(steps)
	if left := len(steps) - 2*shownSteps; left > 0 {
		steps = slices.Replace(steps, shownSteps, shownSteps+left, fmt.Sprintf("...(%d more)...", left))
	}
	return strings.Join(steps, "")
}

func (p *path) last() string {
	switch {
	case p.step != "":
		return p.step
	case p.key.IsValid():
		return fmt.Sprintf("[%v]", p.key)
	}
	return fmt.Sprintf("[%d]", p.index)
}
