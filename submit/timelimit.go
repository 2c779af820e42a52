package submit

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// timeLimit matches the forms of a time limit, which are sbatch's. sbatch also accepts "1-" and
// "-5", but those are typos.
var timeLimit = regexp.MustCompile(`^([0-9]{1,9}-)?[0-9]{1,9}(:[0-9]{1,9}){0,2}$`)

// validTime reports whether text is a time limit: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or no limit.
func validTime(text string) bool {
	return timeLimit.MatchString(text) || strings.EqualFold(text, "UNLIMITED") || strings.EqualFold(text, "INFINITE")
}

// timeForms are the units of a time limit's numbers, by whether it has days and by the number of
// colons.
var timeForms = map[bool][][]time.Duration{
	false: {{time.Minute}, {time.Minute, time.Second}, {time.Hour, time.Minute, time.Second}},
	true:  {{time.Hour}, {time.Hour, time.Minute}, {time.Hour, time.Minute, time.Second}},
}

// TimeLimit returns the length of a time limit; 0 if it is unlimited or text is not a time limit.
func TimeLimit(text string) time.Duration {
	if !timeLimit.MatchString(text) {
		return 0
	}
	days, rest, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, rest = "0", text
	}
	limit := 24 * time.Hour * time.Duration(number(days))
	parts := strings.Split(rest, ":")
	for i, unit := range timeForms[hasDays][len(parts)-1] {
		limit += unit * time.Duration(number(parts[i]))
	}
	return limit
}

// number parses digits that a pattern has matched.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// defaultSignalLead is how long before its time limit a job is told to save and stop. It is long
// enough for a scheduler that checks limits only twice a minute.
const defaultSignalLead = 90 * time.Second

// Lead returns how long before the time limit the programs are told to save and stop.
func (s JobSpec) Lead() time.Duration {
	lead := defaultSignalLead
	if limit := TimeLimit(s.Time); limit > 0 {
		lead = min(lead, max(limit/4, time.Second))
	}
	return cmp.Or(s.SignalLead, lead).Truncate(time.Second)
}

func (s JobSpec) validateRestarts() error {
	if s.MaxRestarts < 0 {
		return fmt.Errorf("--max-restarts=%d: must be at least 0 (0 means never)", s.MaxRestarts)
	}
	limit := TimeLimit(s.Time)
	switch {
	case s.SignalLead != 0 && s.SignalLead < time.Second:
		return fmt.Errorf("--signal-lead=%s: give at least 1s, such as 5m", s.SignalLead)
	case limit > 0 && s.SignalLead >= limit:
		return fmt.Errorf("--signal-lead=%s: must be shorter than the time limit, --time=%s", s.SignalLead, s.Time)
	}
	return nil
}
