package relay

import (
	"slices"
	"testing"
)

// TestUnkeep: a cell that only keeps variables that can't be kept is not part of a job.
func TestUnkeep(t *testing.T) {
	r := &relay{}
	codes := []string{"%keep a", "%keep a, b", "%keep a\nvar c = 1", "%keep\n%keep a", "var a = 1", "!x\n%keep a", "%keep b"}
	for i, code := range codes {
		r.executed = append(r.executed, executed{count: i + 1, code: code, succeeded: true})
	}
	places := r.unkeep([]string{"a"})
	if want := []string{"cell [1] line 1", "cell [2] line 1", "cell [3] line 1", "cell [4] line 2", "cell [6] line 2"}; !slices.Equal(places, want) {
		t.Errorf("asked for in %q, want %q", places, want)
	}
	if got := r.sources(); !slices.Equal(got, codes[1:]) {
		t.Errorf("%q are left, want %q", got, codes[1:])
	}
}
