package trainer

import (
	"fmt"
	"slices"
	"strings"

	"gonbatch/checkpoint"
)

func oneOf(name, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	return fmt.Errorf("%s: %q: it must be %s or %s", name, value, strings.Join(values[:len(values)-1], ", "), values[len(values)-1])
}

// better reports whether a value is better than the best so far, by more than delta. NaN is never
// better.
func better(value float64, best *checkpoint.Number, mode string, delta float64) bool {
	switch {
	case value != value:
		return false
	case best == nil:
		return true
	case mode == "max":
		return value > float64(*best)+delta
	}
	return value < float64(*best)-delta
}
