package trainer

import (
	"time"

	"gonbatch/trainer/internal/step"
)

// clock measures for how long the steps of an epoch wait for their batches, and how long they take.
type clock struct {
	waited, stepped time.Duration
	since           time.Time          // When the phase began that is going on.
	ran             map[step.Kind]bool // The programs that have run, and so are compiled.
	wait            time.Duration      // Of this batch.
}

// begin begins an epoch.
func (c *clock) begin() {
	c.waited, c.stepped = 0, 0
	if c.ran == nil {
		c.ran = map[step.Kind]bool{}
	}
}

// asks notes that the next batch is needed now.
func (c *clock) asks() { c.since = time.Now() }

// arrives notes that the batch is there, and returns from when to when it was waited for.
func (c *clock) arrives() (asked, arrived time.Time) {
	asked, arrived = c.since, time.Now()
	c.since, c.wait = arrived, arrived.Sub(asked)
	return asked, arrived
}

// ends notes that the batch's program has ended, and returns from when to when it ran. The first
// time, the program is compiled too, which doesn't count.
func (c *clock) ends(kind step.Kind) (began, ended time.Time) {
	began, ended = c.since, time.Now()
	if c.ran[kind] {
		c.waited += c.wait
		c.stepped += ended.Sub(began)
	}
	c.ran[kind] = true
	return began, ended
}
