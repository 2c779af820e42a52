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
		return c.world.scatter(intent{kind: kindReduceScatter, dtype: typeOf[T]()}, reductionOf[T](reduceSum), bytesOf(in), bytesOf(out))
	})
}

// scatter passes the reduction of each member's part around the ring. It begins at the next member,
// and ends, complete, at the one that it is for.
func (t *team) scatter(i intent, reduce reduction, in, out []byte) error {
	if err := t.agree(i, len(out)); err != nil {
		return err
	}
	if t.size() == 1 {
		copy(out, in)
		return nil
	}
	send, buffer := t.part(-1, in), t.comm.buffer(2*len(out))
	for step := range t.size() - 1 {
		got := buffer[step%2*len(out) : (step%2+1)*len(out)]
		if err := t.pass(send, got); err != nil {
			return err
		}
		reduce(got, t.part(-step-2, in))
		send = got
	}
	copy(out, send)
	return nil
}
