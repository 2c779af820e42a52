package compilecache

import (
	"testing"
	"time"
)

// MachineOf is Machine for the text of a /proc/cpuinfo.
var MachineOf = machine

// SetSilence takes a holder for dead after a second without a sign of life.
func SetSilence(t *testing.T) { set(t, &silence, time.Second) }

// SetPatience has processes wait for a second only.
func SetPatience(t *testing.T) { set(t, &patience, time.Second) }

func set(t *testing.T, d *time.Duration, value time.Duration) {
	before := *d
	*d = value
	t.Cleanup(func() { *d = before })
}
