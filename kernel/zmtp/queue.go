package zmtp

import (
	"slices"
	"sync"
	"time"
)

const (
	// overhead is what a packet counts besides its bytes.
	overhead = 64
	// piece is how much is written at once: each completed write shows that the client reads.
	piece = 64 << 10
)

// queue has the packets waiting to be written to one client.
type queue struct {
	limit int64

	mu      sync.Mutex
	changed *sync.Cond
	packets [][]byte
	// size is the size of the packets and of the data being written. moved is when some of it was
	// last written, or when it began to wait.
	size  int64
	moved time.Time
	// surplus is how much was added since the queue became full.
	surplus int64
	closed  bool
}

func newQueue(limit int64) *queue {
	q := &queue{limit: limit}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// add adds a packet and reports whether there was space for it: not if as much as the limit was
// added since the queue became full. One packet may be of any size. A closed queue drops the
// packet.
func (q *queue) add(packet []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size <= q.limit {
		q.surplus = 0
	} else {
		q.surplus += int64(len(packet)) + overhead
	}
	if q.closed || q.surplus > q.limit {
		return q.closed
	}
	if q.size == 0 {
		q.moved = time.Now()
	}
	q.packets = append(q.packets, packet)
	q.size += int64(len(packet)) + overhead
	q.changed.Broadcast()
	return true
}

// take waits for packets and returns one, or several small ones, to write; ok is false if the queue
// is closed. Call written as the bytes are written.
func (q *queue) take() (text []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.packets) == 0 && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return nil, false
	}
	text = slices.Clip(q.packets[0]) // Other connections may share it.
	n := 1
	for ; n < len(q.packets) && len(text)+len(q.packets[n]) <= piece; n++ {
		text = append(text, q.packets[n]...)
	}
	clear(q.packets[:n])
	q.packets = q.packets[n:]
	q.size -= overhead * int64(n) // The bytes count until they are written.
	return text, true
}

// written records that n bytes have been written.
func (q *queue) written(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size -= int64(n)
	q.moved = time.Now()
	q.changed.Broadcast()
}

// room waits until the queue is within its limit, or closed. It returns false if nothing was
// written for the duration stall.
func (q *queue) room(stall time.Duration) bool {
	return q.wait(q.limit, func() time.Time { return q.moved.Add(stall) })
}

// drain waits until everything is written, or until end.
func (q *queue) drain(end time.Time) { q.wait(0, func() time.Time { return end }) }

func (q *queue) wait(limit int64, end func() time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.size > limit && !q.closed {
		left := time.Until(end())
		if left <= 0 {
			return false
		}
		timer := time.AfterFunc(left, q.wake)
		q.changed.Wait()
		timer.Stop()
	}
	return true
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.packets = true, nil
	q.changed.Broadcast()
}
