package trainer

import (
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/load"
)

// collector puts predictions together into batches.
type collector struct {
	size int // Of a batch. The last one may be smaller, and one before outputs of other shapes.
	use  func(indices []int, predictions []*tensors.Tensor) error
	got  predicted // Not yet used: less than a batch.
	next int       // The index of the first of these.
}

// add takes the next predictions, and uses the batches that they complete.
func (c *collector) add(more predicted) error {
	if more.Examples == 0 {
		return nil
	}
	if c.got.Examples > 0 && !slices.EqualFunc(c.got.Outputs, more.Outputs, output.equals) {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.got.add(more)
	for c.got.Examples >= c.size {
		if err := c.batch(c.size); err != nil {
			return err
		}
	}
	return nil
}

// flush uses what is left.
func (c *collector) flush() error {
	if c.got.Examples == 0 {
		return nil
	}
	return c.batch(c.got.Examples)
}

// batch uses the first n predictions.
func (c *collector) batch(n int) error {
	predictions, err := c.got.take(n).tensors()
	defer load.Finalize(predictions)
	if err != nil {
		return err
	}
	indices := slices.Collect(load.Cut(c.next, c.next+n, n))[0]
	c.next += n
	return c.use(indices, predictions)
}
