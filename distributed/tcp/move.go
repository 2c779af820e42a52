package tcp

// The collectives of a team that only move data.

// broadcast replaces the data on every member with that of the root's place. The data goes around
// the ring by segments, so that the ranks pass it on while they receive it.
func (t *team) broadcast(dtype int, data []byte, root int) error {
	if err := t.agree(intent{kind: kindBroadcast, dtype: dtype, root: root}, len(data)); err != nil {
		return err
	}
	for part := range segments(data) {
		if t.place != root {
			if err := receive(t.from, part); err != nil {
				return err
			}
		}
		if t.at(1) == root {
			continue
		}
		if err := send(t.to, part); err != nil {
			return err
		}
	}
	return nil
}

// gather puts the data of all members into `into`, in their order. If data is nil, this rank's is
// already there.
func (t *team) gather(dtype int, data, into []byte) error {
	own := t.part(0, into)
	if err := t.agree(intent{kind: kindAllGather, dtype: dtype}, len(own)); err != nil {
		return err
	}
	copy(own, data)
	if t.size() >= chainRanks && len(into) <= maxGathered {
		return t.gatherChain(into, len(own))
	}
	for step := range t.size() - 1 {
		if err := t.pass(t.part(-step, into), t.part(-step-1, into)); err != nil {
			return err
		}
	}
	return nil
}

// allToAll puts the parts that the members have for this one into `into`, in their order. The data
// has a part for each. In each step, every member sends to one and receives from another.
func (t *team) allToAll(dtype int, data, into []byte) error {
	if err := t.linkAll(); err != nil {
		return err
	}
	if err := t.agree(intent{kind: kindAllToAll, dtype: dtype}, len(data)); err != nil {
		return err
	}
	copy(t.part(0, into), t.part(0, data))
	for step := 1; step < t.size(); step++ {
		if err := exchange(t.member(step), t.member(-step), t.part(step, data), t.part(-step, into)); err != nil {
			return err
		}
	}
	return nil
}
