package compilecache

import (
	"testing"
	"time"
)

// MachineOf is Machine for the text of a /proc/cpuinfo, and Place is the folder of the cache.
var (
	MachineOf = machine
	Place     = place
)

// SetSilence makes processes consider a holder dead after a second without a sign of life.
func SetSilence(t *testing.T) { set(t, &silence, time.Second) }

// SetPatience makes processes wait for only a second.
func SetPatience(t *testing.T) { set(t, &patience, time.Second) }

func set(t *testing.T, d *time.Duration, value time.Duration) {
	before := *d
	*d = value
	t.Cleanup(func() { *d = before })
}
