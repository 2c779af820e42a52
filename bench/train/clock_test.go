package main

import (
	"math"
	"testing"
	"time"
)

// TestCosts has steps of 10 ms, and checkpoints after steps 20, 40 and 60 that stop the training
// for 5 ms and slow each of the next two steps down by 3 ms.
func TestCosts(t *testing.T) {
	c := &clock{first: 5, last: 79}
	now := time.Unix(1_000_000, 0)
	for step := 1; step <= c.last; step++ {
		took := 10 * time.Millisecond
		if after := step % 20; step > 20 && (after == 1 || after == 2) {
			took += 3 * time.Millisecond
		}
		if step > 20 && step%20 == 1 {
			took += 5 * time.Millisecond
		}
		now = now.Add(took)
		if step >= c.first {
			c.at = append(c.at, now)
		}
	}
	c.stalls = []time.Duration{time.Second, 5 * time.Millisecond, 5 * time.Millisecond}
	stall, extra := c.costs(20)
	if stall != 5 || math.Abs(extra-11) > 1e-9 {
		t.Errorf("a stall of %g ms and %g ms more in all, want 5 and 11", stall, extra)
	}
	if r := c.result(64, 20); math.Abs(r.MillisPerStep-(740+33)/74.0) > 1e-9 || math.Abs(r.ImagesPerSecond-64e3/r.MillisPerStep) > 1e-9 {
		t.Errorf("result %+v", r)
	}
}
