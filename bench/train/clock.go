package main

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// clock measures the steps from first to last, counted from 1. Earlier steps are for compilation.
type clock struct {
	first, last int
	done        int
	at          []time.Time // The ends of the steps from first on.
	cpu         time.Duration
	stalls      []time.Duration
	over        []time.Duration // How much longer the trainer's step took than the bare one after it.
}

// result is the line that is printed.
type result struct {
	ImagesPerSecond float64 `json:"images_per_second"`
	MillisPerStep   float64 `json:"ms_per_step"`
	CPUPerStep      float64 `json:"cpu_ms_per_step"`
	Stall           float64 `json:"stall_ms"`
	Extra           float64 `json:"extra_ms"`
	Over            float64 `json:"over_ms"`
	MeanOver        float64 `json:"mean_over_ms"`
}

// step is called at the end of a step, and reports whether it was the last.
func (c *clock) step() (over bool) {
	c.done++
	if c.done < c.first || c.done > c.last {
		return c.done >= c.last
	}
	if c.done == c.first {
		c.cpu = -cpuTime()
	}
	if c.done == c.last {
		c.cpu += cpuTime()
	}
	c.at = append(c.at, time.Now())
	return c.done == c.last
}

// pair is called after a step of each loop.
func (c *clock) pair(trainer, bare time.Duration) {
	if over := c.step(); c.done > c.first && !over {
		c.over = append(c.over, trainer-bare)
	}
}

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err) // It fails only for a bad argument.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (c *clock) result(images, saveEvery int) result {
	steps := c.last - c.first
	total := c.at[steps].Sub(c.at[0])
	r := result{
		ImagesPerSecond: float64(images*steps) / total.Seconds(), MillisPerStep: millis(total) / float64(steps), CPUPerStep: millis(c.cpu) / float64(steps),
	}
	if n := len(c.over); n > 0 {
		var sum time.Duration
		for _, d := range c.over {
			sum += d
		}
		r.MeanOver, r.Over = millis(sum)/float64(n), millis(middle(c.over))
		// A step is half of a turn.
		r.ImagesPerSecond, r.MillisPerStep, r.CPUPerStep = 2*r.ImagesPerSecond, r.MillisPerStep/2, r.CPUPerStep/2
	}
	if saveEvery > 0 {
		r.Stall, r.Extra = c.costs(saveEvery)
	}
	return r
}

// saved is called when the training may continue after a checkpoint.
func (c *clock) saved() {
	if c.done >= c.first && c.done <= c.last {
		c.stalls = append(c.stalls, time.Since(c.at[len(c.at)-1]))
	}
}

// costs returns the costs of a checkpoint. The first does not count, because its memory is new.
func (c *clock) costs(saveEvery int) (stall, extra float64) {
	first := 2*saveEvery - c.first // The interval that begins with the second checkpoint.
	var plain []time.Duration
	checkpoints := 0
	for i := first; i < len(c.at)-1; i++ {
		after := (i - first) % saveEvery
		if after == 0 {
			checkpoints++
		}
		if after > saveEvery/2 { // By then, everything is on disk.
			plain = append(plain, c.at[i+1].Sub(c.at[i]))
		}
	}
	total := c.at[len(c.at)-1].Sub(c.at[first]) - time.Duration(len(c.at)-1-first)*middle(plain)
	return millis(middle(c.stalls[1:])), millis(total) / float64(checkpoints)
}

func middle(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
