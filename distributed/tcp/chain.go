package tcp

// Little data goes along a chain: it is collected from rank 0 to the last rank, which sends the
// result around. In a ring of n ranks that takes 2n messages, one after the other, where the ring
// algorithm takes n messages of each rank: with a thousand ranks, a million. So many cost a machine
// with many ranks seconds of processor time. Recursive doubling takes fewer, but each rank needs
// connections for it: compiled programs have them, and training loops (Comm.LinkTree).

// The chain is for at least chainRanks ranks. A message on it has at most maxGathered or maxReduced
// bytes: more are faster in the ring, where each message has only a part.
const (
	chainRanks  = 16
	maxGathered = 64 << 10
	maxReduced  = 4 << 10
)

// share gives all members the last one's data.
func (t *team) share(data []byte) error {
	last := t.size() - 1
	if t.place != last {
		if err := receive(t.from, data); err != nil {
			return err
		}
	}
	if t.at(1) == last {
		return nil
	}
	return send(t.to, data)
}

// gatherChain completes `into`, which has this member's part, with the parts of the others.
func (t *team) gatherChain(into []byte, part int) error {
	if t.place > 0 {
		if err := receive(t.from, into[:t.place*part]); err != nil {
			return err
		}
	}
	if t.place < t.size()-1 {
		if err := send(t.to, into[:(t.place+1)*part]); err != nil {
			return err
		}
	}
	return t.share(into)
}

// reduceChain replaces the data on every member with its reduction, in their order.
func (t *team) reduceChain(i intent, reduce reduction, data []byte) error {
	if err := t.agree(i, len(data)); err != nil {
		return err
	}
	if t.place > 0 {
		got := t.comm.buffer(len(data))
		if err := receive(t.from, got); err != nil {
			return err
		}
		reduce(data, got)
	}
	if t.place < t.size()-1 {
		if err := send(t.to, data); err != nil {
			return err
		}
	}
	return t.share(data)
}
