package submit

import (
	"regexp"
	"strings"
)

// timeLimit has every form in sbatch's manual. sbatch also takes "1-" and "-5"; those are slips, not limits.
var timeLimit = regexp.MustCompile(`^([0-9]{1,9}-)?[0-9]{1,9}(:[0-9]{1,9}){0,2}$`)

// ValidTime tells whether sbatch reads text as a time limit: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or no limit.
func ValidTime(text string) bool {
	return timeLimit.MatchString(text) || strings.EqualFold(text, "UNLIMITED") || strings.EqualFold(text, "INFINITE")
}
