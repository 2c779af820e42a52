package load

import (
	"errors"
	"iter"
	"sync"
)

// Options says how far a Queue may be ahead.
type Options[T any] struct {
	// Workers is the number of values that are built at once. 0: none is built ahead; Next builds
	// its own.
	Workers int
	// Ahead is the number of values that may be built, or begun, before they are asked for. It is
	// at least Workers.
	Ahead int
	// Bytes limits the memory of these values. One is always built ahead, however large. 0: no
	// limit.
	Bytes int64
	// Size returns the memory of a value. It is needed if there is a limit.
	Size func(T) int64
	// Drop frees a value that was built, but won't be used.
	Drop func(T)
}

// Queue builds values ahead of their use, and hands them out in order. It has one user at a time.
// While it has enough values, it has no goroutines.
type Queue[T any] struct {
	options Options[T]
	next    func() (build func() (T, error), ok bool)
	running sync.WaitGroup

	mu       sync.Mutex
	slots    []*slot[T] // In order.
	building int
	stopped  bool  // No more values are begun.
	bytes    int64 // Of the values that are built.
	largest  int64 // Of all values so far.
}

// slot is the place of a value in the order.
type slot[T any] struct {
	build func() (T, error)
	value T
	err   error
	size  int64
	taken bool
	done  chan struct{} // Closed when the value is built.
}

// errGone is the error of a value whose builder never returned.
var errGone = errors.New("the goroutine that called the dataset has ended: a dataset must not call runtime.Goexit, or FailNow of a test")

// NewQueue begins to build values. next returns the functions that build them, in order, until
// there are no more. It is called by one goroutine at a time, the functions by several. After an
// error, no more values are begun.
func NewQueue[T any](o Options[T], next func() (build func() (T, error), ok bool)) *Queue[T] {
	o.Ahead = max(o.Ahead, o.Workers)
	q := &Queue[T]{options: o, next: next}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fill()
	return q
}

// Next returns the next value, and waits until it is built. ok is false if there are no more. The
// value belongs to the caller.
func (q *Queue[T]) Next() (value T, ok bool, err error) {
	s := q.take()
	if s == nil {
		return value, false, nil
	}
	if q.options.Workers == 0 {
		q.run(s)
	}
	<-s.done
	return s.value, true, s.err
}

// All yields the values up to the first error, and closes the queue at the end.
func (q *Queue[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer q.Close()
		for {
			value, ok, err := q.Next()
			if !ok || !yield(value, err) || err != nil {
				return
			}
		}
	}
}

// Lists yields what build makes of each list of numbers.
func Lists[T any](lists iter.Seq[[]int], o Options[T], build func(indices []int) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		next, stop := pull(lists)
		defer stop()
		queue := NewQueue(o, func() (func() (T, error), bool) {
			indices, ok := next()
			return func() (T, error) { return build(indices) }, ok
		})
		queue.All()(yield)
	}
}

// pull is like iter.Pull, but any goroutine may call next, also if the caller of pull is locked to
// a thread of the operating system.
func pull(lists iter.Seq[[]int]) (next func() ([]int, bool), stop func()) {
	all, done := make(chan []int), make(chan struct{})
	go func() {
		defer close(all)
		for list := range lists {
			select {
			case all <- list:
			case <-done:
				return
			}
		}
	}()
	next = func() ([]int, bool) {
		list, ok := <-all
		return list, ok
	}
	return next, func() {
		close(done)
		for range all { // Until the goroutine has ended.
		}
	}
}

// Cut yields the numbers from begin to end-1, in lists of at most size.
func Cut(begin, end, size int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for begin := begin; begin < end; {
			indices := make([]int, min(size, end-begin))
			for i := range indices {
				indices[i] = begin + i
			}
			begin += len(indices)
			if !yield(indices) {
				return
			}
		}
	}
}

// Close waits for the values that are being built, and drops those that were not used.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.running.Wait()
	for _, s := range q.slots {
		if s.err == nil {
			q.options.Drop(s.value)
		}
	}
	q.slots = nil
}

// take removes the first slot, which makes room for another; nil if there is none.
func (q *Queue[T]) take() *slot[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.slots) == 0 && !q.stopped {
		q.add()
	}
	if len(q.slots) == 0 {
		return nil
	}
	s := q.slots[0]
	q.slots[0] = nil // The value must not stay in memory.
	q.slots = q.slots[1:]
	q.bytes -= s.size
	s.taken = true
	q.fill()
	return s
}

// fill begins as many values as there is room for. q.mu is held.
func (q *Queue[T]) fill() {
	for q.building < q.options.Workers && !q.stopped && q.hasRoom() {
		if s := q.add(); s != nil {
			q.running.Go(func() { q.run(s) })
		}
	}
}

// hasRoom reports whether another value may be begun. The sizes of those that are being built are
// taken to be the largest so far; until one is known, one is built.
func (q *Queue[T]) hasRoom() bool {
	switch n := len(q.slots); {
	case n == 0 || q.options.Bytes == 0:
		return n < q.options.Ahead
	case q.largest == 0:
		return q.building == 0 && n < q.options.Ahead
	default:
		return n < q.options.Ahead && q.bytes+int64(q.building+1)*q.largest <= q.options.Bytes
	}
}

// add adds the slot of the next value; nil if there are no more values.
func (q *Queue[T]) add() *slot[T] {
	build, ok := q.next()
	if !ok {
		q.stopped = true
		return nil
	}
	s := &slot[T]{build: build, err: errGone, done: make(chan struct{})}
	q.slots = append(q.slots, s)
	q.building++
	return s
}

// run builds a value.
func (q *Queue[T]) run(s *slot[T]) {
	defer q.finish(s)
	s.value, s.err = s.build()
}

// finish also runs if the goroutine of a value ends early.
func (q *Queue[T]) finish(s *slot[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer close(s.done)
	q.building--
	if s.err != nil {
		q.stopped = true
		return
	}
	if q.options.Size != nil {
		s.size = q.options.Size(s.value)
		q.largest = max(q.largest, s.size)
	}
	if !s.taken {
		q.bytes += s.size
	}
	q.fill()
}
