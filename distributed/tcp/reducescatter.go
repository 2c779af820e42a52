package tcp

import "fmt"

// ReduceScatter adds up what all ranks pass as `in`, element by element, and puts this rank's part
// of the sum into out: `in` has one part of len(out) elements for each rank, in order of rank. It
// leaves `in` as it is.
func ReduceScatter[T Number](c *Comm, in, out []T) error {
	if len(in) != len(out)*c.size {
		return fmt.Errorf("tcp: rank %d of %d: reduce-scatter of %d elements into %d: each rank must get as many", c.rank, c.size, len(in), len(out))
	}
	return c.do("reduce-scatter", func() error {
		if err := c.agree('s', len(bytesOf(out))); err != nil {
			return err
		}
		return c.scatter(bytesOf(in), bytesOf(out), func(into, from []byte) { add[T](into, from) })
	})
}

// scatter passes the sum of each rank's part around the ring. It begins at the next rank, and ends,
// complete, at the rank that it is for.
func (c *Comm) scatter(in, out []byte, add func(into, from []byte)) error {
	part := func(step int) []byte {
		i := c.neighbour(step)
		return in[i*len(out) : (i+1)*len(out)]
	}
	if c.size == 1 {
		copy(out, in)
		return nil
	}
	send, buffer := part(-1), c.buffer(2*len(out))
	for step := range c.size - 1 {
		got := buffer[step%2*len(out) : (step%2+1)*len(out)]
		if err := c.exchange(send, got); err != nil {
			return err
		}
		add(got, part(-step-2))
		send = got
	}
	copy(out, send)
	return nil
}
