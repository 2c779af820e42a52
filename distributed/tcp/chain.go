package tcp

// Little data goes along a chain: it is collected from rank 0 to the last rank, which sends the
// result around. In a ring of n ranks that takes 2n messages, one after the other, where the ring
// algorithm takes n messages of each rank: with a thousand ranks, a million. So many cost a machine
// with many ranks seconds of processor time.

// The chain is for at least chainRanks ranks. A message on it has at most maxGathered or maxReduced
// bytes: more are faster in the ring, where each message has only a part.
const (
	chainRanks  = 16
	maxGathered = 64 << 10
	maxReduced  = 4 << 10
)

// share gives all ranks the last rank's data.
func (c *Comm) share(data []byte) error {
	last := c.size - 1
	if c.rank != last {
		if err := c.receive(data); err != nil {
			return err
		}
	}
	if c.neighbour(1) == last {
		return nil
	}
	return c.send(data)
}

// gatherChain completes `into`, which has this rank's part, with the parts of the other ranks.
func (c *Comm) gatherChain(into []byte, part int) error {
	if c.rank > 0 {
		if err := c.receive(into[:c.rank*part]); err != nil {
			return err
		}
	}
	if c.rank < c.size-1 {
		if err := c.send(into[:(c.rank+1)*part]); err != nil {
			return err
		}
	}
	return c.share(into)
}

// reduceChain replaces the data by that of all ranks, added up in order of rank.
func (c *Comm) reduceChain(data []byte, add func(into, from []byte)) error {
	if c.rank > 0 {
		got := c.buffer(len(data))
		if err := c.receive(got); err != nil {
			return err
		}
		add(data, got)
	}
	if c.rank < c.size-1 {
		if err := c.send(data); err != nil {
			return err
		}
	}
	return c.share(data)
}
