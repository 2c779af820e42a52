package plural

import (
	"fmt"
	"strings"
)

// Integer is the type of a number.
type Integer interface {
	~int | ~int32 | ~int64 | ~uint64
}

// Of returns a number of things, which one names.
func Of[N Integer](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, word(one))
}

// And lists names: a, b and c.
func And(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// word returns the plural of a noun.
func word(one string) string {
	for _, hiss := range []string{"s", "x", "z", "sh", "tch", "nch"} {
		if strings.HasSuffix(one, hiss) {
			return one + "es"
		}
	}
	stem, y := strings.CutSuffix(one, "y")
	if y && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])) {
		return stem + "ies"
	}
	return one + "s"
}
