package tcp

// scatter passes the reduction of each member's part around the ring. It begins at the next member,
// and ends, complete, at the one that it is for.
func (t *team) scatter(i intent, reduce reduction, in, out []byte) error {
	if err := t.agree(i, len(out)); err != nil {
		return err
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
