package arch

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// counted matches a number that is formatted before one of the nouns of which there may be one.
var counted = regexp.MustCompile(`%d (nodes|ranks|cells|tasks|programs|commands|times|steps|epochs|updates|devices|processes|examples|lines|jobs|files|` +
	`batches|classes|GPUs|CPUs|cores|restarts|arguments|records|variables|losses|gradients|channels|labels|images|tensors|validations|entries|checks|others|values)\b`)

// neverOne has the messages whose number is never 1, with the reason.
var neverOne = map[string]string{
	"%d programs, and a script has one": "only for several programs",
	"so each of the %d ranks computes":  "only for several ranks",
	"%d ranks: give 0 to":               "only for several ranks",
	"can't be used by %d ranks":         "only for several ranks",
	"=%d with %d ranks":                 "only for several ranks",
	"combined over %d ranks":            "only for several ranks",
	"started %d ranks, which need MPI":  "only for several ranks",
	"collectives over %d ranks":         "only for several ranks",
	"evenly over %d ranks and devices":  "only for several ranks or devices",
	"batches are for %d devices":        "only for several devices",
	"the batch of the %d examples":      "only for several examples",
	" x %s on %d nodes":                 "only for several nodes",
	"says the world has %d ranks":       "only for a size below 1",
	"a limit of %d batches, and %d":     "only for a negative number",
	"%d batches to prefetch":            "only for a number below 1",
	"%d channels: call Channels":        "only for a number below 1",
	"%d classes; there must be":         "only for a number below 1",
	"changed variables %d times":        "the limit is far above 1",
	"%d records is full":                "the length of a queue, a constant",
	"while they are read, %d times":     "a constant",
	"%d of %d values are NaN":           "it goes with the first number",
}

// TestPlurals checks that messages get "1 rank" right: package plural counts.
func TestPlurals(t *testing.T) {
	unused := map[string]bool{}
	for text := range neverOne {
		unused[text] = true
	}
	eachFile(t, func(name string) {
		if filepath.Ext(name) != ".go" || within(name, []string{"bench", "tests", "distributed/ranktest"}) != "" {
			return
		}
		for _, literal := range literals(t, name) {
			text := literal.text
			for known := range neverOne {
				if strings.Contains(text, known) {
					delete(unused, known)
					text = strings.ReplaceAll(text, known, "")
				}
			}
			if what := counted.FindString(text); what != "" {
				t.Errorf("%s:%d: %q reads wrong for 1: use plural.Of, or list the message in neverOne", name, literal.line, what)
			}
		}
	})
	for text := range unused {
		t.Errorf("%q is listed as a message, but no code has it", text)
	}
}
