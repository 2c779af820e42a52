package show

import (
	"testing"
	"time"
)

// TestRemaining: long training runs have a remaining time, too. A day in nanoseconds times a
// million updates doesn't fit into an int64.
func TestRemaining(t *testing.T) {
	day := 24 * time.Hour
	tests := []struct {
		name       string
		elapsed    time.Duration
		done, left int64
		want       time.Duration
	}{
		{"half", time.Minute, 10, 10, time.Minute},
		{"nothing left", time.Minute, 10, 0, 0},
		{"days and a million updates", 10 * day, 1_000_000, 2_000_000, 20 * day},
		{"forever", day, 1, 1 << 60, longest},
	}
	for _, test := range tests {
		if got := remaining(test.elapsed, test.done, test.left).Round(time.Second); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
