package estimate

import (
	"context"
	"fmt"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Ask forecasts the program's step. If that does not fit, it looks for the largest batch that does.
func Ask(ctx context.Context, shell submit.Shell, p Program, world forecast.World) (r report.Forecast, err error) {
	gpu, err := forecast.Find(world.Target)
	if err != nil {
		return r, submit.UsageError{Err: err}
	}
	answer, err := p.ask(ctx, shell, forecast.Question{World: world})
	if err != nil {
		return r, err
	}
	r = report.Forecast{
		Cell: p.Cell.Name, World: world, GPU: gpu.Full, Capacity: gpu.Capacity, Usable: gpu.Usable(), Origin: gpu.Origin,
		Answer: answer, Floor: gpu.Floor(world, answer), Fits: answer.Memory.Fits(gpu),
	}
	if r.Fits || answer.Batch == 0 {
		return r, nil
	}
	r.Largest, err = largest(answer.Batch/world.Ranks(), answer.Memory.Total, gpu.Usable(), func(batch int) (int64, error) {
		fmt.Fprintf(shell.Err, "submit: the step does not fit; trying a batch of %d\n", batch*world.Ranks())
		smaller, err := p.ask(ctx, shell, forecast.Question{World: world, Batch: batch * world.Ranks()})
		if err == nil && smaller.Batch != batch*world.Ranks() {
			err = fmt.Errorf("the program was asked for a batch of %d, and made one of %d", batch*world.Ranks(), smaller.Batch)
		}
		return smaller.Memory.Total, err
	})
	r.Largest *= world.Ranks()
	return r, err
}

// tries is how often the search asks.
const tries = 8

// largest is the largest batch below tooLarge whose memory is not above the limit; 0 if not even 1
// fits. Memory is nearly a straight line over the batch, so the next try is where the line through
// the two nearest crosses the limit. If that is not exact after some tries, it is the largest that
// was seen to fit.
func largest(tooLarge int, memory, limit int64, of func(batch int) (int64, error)) (int, error) {
	if tooLarge <= 1 {
		return 0, nil
	}
	low, lowMemory := 1, int64(0)
	high, highMemory := tooLarge, memory
	var err error
	if lowMemory, err = of(low); err != nil || lowMemory > limit {
		return 0, err
	}
	for try := 1; try < tries && high-low > 1; try++ {
		next := low + int(float64(high-low)*float64(limit-lowMemory)/float64(max(1, highMemory-lowMemory)))
		next = min(max(next, low+1), high-1)
		found, err := of(next)
		if err != nil {
			return 0, err
		}
		if found <= limit {
			low, lowMemory = next, found
		} else {
			high, highMemory = next, found
		}
	}
	return low, nil
}
