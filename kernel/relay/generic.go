package relay

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// declaredTwice matches the compiler's message about a method that GoNB has not replaced, because
// its receiver's type parameters have other names. The place in the composed file means nothing to
// the user.
var declaredTwice = regexp.MustCompile(`^method (\w+)\.(\w+) already declared(?: at \S+(?: \d+:\d+)?)?$`)

// explainTwice says which cells declare a method twice, and how to forget the earlier one. It
// returns other messages unchanged.
func (e *execution) explainTwice(message string) string {
	match := declaredTwice.FindStringSubmatch(message)
	if match == nil {
		return message
	}
	key := match[1] + "~" + match[2]
	var places, spelled []string
	for _, cell := range slices.Backward(e.relay.executed) {
		for _, now := range gocell.Spelled(cell.code, key) {
			if !slices.Contains(spelled, now) {
				spelled = append(spelled, now)
				places = append(places, fmt.Sprintf("cell [%d] as %s", cell.count, now))
			}
		}
	}
	if len(spelled) < 2 {
		return fmt.Sprintf("method %s.%s already declared", match[1], match[2])
	}
	return fmt.Sprintf("method %s.%s already declared: %s; give its receiver the same type parameters, or forget the earlier one by %%rm %s",
		match[1], match[2], strings.Join(places, ", "), spelled[1])
}
