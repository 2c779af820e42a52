package trainer

import (
	"fmt"
	"slices"
	"strings"
)

func oneOf(name, value string, values []string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("%s: %q: it must be %s or %s", name, value, strings.Join(values[:len(values)-1], ", "), values[len(values)-1])
}

// modeOf tells by a metric's name whether more of it is better.
func modeOf(metric string) string {
	for _, good := range []string{"accuracy", "precision", "recall", "auc", "f1"} {
		if strings.HasSuffix(strings.ToLower(metric), good) {
			return "max"
		}
	}
	return "min"
}

// better tells whether a value is better than the best so far, by more than delta. NaN is never better.
func better(value float64, best *float64, mode string, delta float64) bool {
	switch {
	case value != value:
		return false
	case best == nil:
		return true
	case mode == "max":
		return value > *best+delta
	}
	return value < *best-delta
}
