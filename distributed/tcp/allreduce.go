package tcp

import "errors"

// AllReduce replaces the values on every rank with their sum over all ranks, element by element.
// All ranks get the same bits.
func (c *Comm) AllReduce(values []float64) error {
	return c.sum(typeFloat64, add[float64], bytesOf(values))
}

func (c *Comm) sum(dtype int, add reduction, data []byte) error {
	return c.do("all-reduce", func() error {
		t, i := c.world, intent{kind: kindAllReduce, dtype: dtype}
		if t.size() >= chainRanks && len(data) <= maxReduced && !t.treed && !t.linked {
			return t.reduceChain(i, add, data)
		}
		return t.allReduce(i, add, data)
	})
}

// small is the size up to which an all-reduce saves latency rather than bytes. At 32 KiB, the ring
// is faster.
const small = 8 << 10

// allReduce replaces the data on every member with its reduction.
func (t *team) allReduce(i intent, reduce reduction, data []byte) error {
	switch {
	case t.size() == 1:
		return nil
	case len(data) <= small:
		return t.doubling(i, reduce, data)
	}
	if err := t.agree(i, len(data)); err != nil {
		return err
	}
	return t.ring(reduce, sizes[i.dtype], data)
}

// segment is how much of a chunk is received before it is passed on.
const segment = 256 << 10

// ring runs the ring algorithm: first each chunk goes around the ring and is reduced, then it goes
// around again, complete. The next member gets each segment as soon as it is there.
func (t *team) ring(reduce reduction, size int, data []byte) error {
	n, steps := len(data)/size, 2*(t.size()-1)
	ready := make(chan []byte, (steps+1)*(len(data)/t.size()/segment+2))
	sent, free := make(chan error, 1), make(chan struct{}, cap(ready))
	go func() { sent <- sendAll(t.to, ready, free) }()
	for part := range segments(t.chunk(0, n, size, data)) {
		ready <- part
	}
	err := t.receiveSteps(steps, ready, func(step int, part []byte) error {
		if step >= t.size()-1 {
			<-free // In the order in which they were sent, segments are replaced by complete ones.
			return receive(t.from, part)
		}
		got := t.comm.buffer(len(part))
		if err := receive(t.from, got); err != nil {
			return err
		}
		reduce(part, got)
		return nil
	}, func(step int) []byte { return t.chunk(-step-1, n, size, data) })
	close(ready)
	if err != nil {
		t.to.conn.Close() // The next rank may not be reading. It will fail anyway.
	}
	return errors.Join(err, <-sent)
}

// receiveSteps receives a chunk in each step, by segments, and passes on all but the last.
func (t *team) receiveSteps(steps int, ready chan<- []byte, one func(step int, part []byte) error, chunk func(step int) []byte) error {
	for step := range steps {
		for part := range segments(chunk(step)) {
			if err := one(step, part); err != nil {
				return err
			}
			if step < steps-1 {
				ready <- part
			}
		}
	}
	return nil
}

// sendAll sends what is ready, and says of each segment when it has been sent. After an error it
// sends nothing more.
func sendAll(to link, ready <-chan []byte, free chan<- struct{}) (err error) {
	for part := range ready {
		if err == nil {
			err = send(to, part)
		}
		free <- struct{}{}
	}
	return err
}

// segments divides data.
func segments(data []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(segment, len(data))
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}
