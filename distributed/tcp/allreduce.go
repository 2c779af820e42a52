package tcp

import "unsafe"

// Number is an element that can be summed.
type Number interface {
	int32 | int64 | float32 | float64
}

// AllReduce replaces the values on every rank with their sum over all ranks, element by element.
// All ranks get the same bits.
func AllReduce[T Number](c *Comm, values []T) error {
	return c.do("all-reduce", func() error {
		if err := c.agree('r', len(values)*size[T]()); err != nil {
			return err
		}
		if c.size >= chainRanks && len(bytesOf(values)) <= maxReduced {
			return c.reduceChain(bytesOf(values), func(into, from []byte) { add[T](into, from) })
		}
		if err := c.reduceScatter(len(values), size[T](), bytesOf(values), func(into, from []byte) { add[T](into, from) }); err != nil {
			return err
		}
		return c.gatherChunks(len(values), size[T](), bytesOf(values))
	})
}

// reduceScatter completes one chunk on each rank: the one after the rank's own number.
func (c *Comm) reduceScatter(n, size int, data []byte, add func(into, from []byte)) error {
	for step := range c.size - 1 {
		send, receive := c.chunk(-step, n, size, data), c.chunk(-step-1, n, size, data)
		got := c.buffer(len(receive))
		if err := c.exchange(send, got); err != nil {
			return err
		}
		add(receive, got)
	}
	return nil
}

// gatherChunks passes the complete chunks around the ring.
func (c *Comm) gatherChunks(n, size int, data []byte) error {
	for step := range c.size - 1 {
		if err := c.exchange(c.chunk(1-step, n, size, data), c.chunk(-step, n, size, data)); err != nil {
			return err
		}
	}
	return nil
}

// chunk divides the data into one chunk for each rank, and returns the one at an offset from this
// rank's own.
func (c *Comm) chunk(offset, n, size int, data []byte) []byte {
	i := ((c.rank+offset)%c.size + c.size) % c.size
	return data[i*n/c.size*size : (i+1)*n/c.size*size]
}

func size[T Number]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

func add[T Number](into, from []byte) {
	a, b := valuesOf[T](into), valuesOf[T](from)
	for i := range a {
		a[i] += b[i]
	}
}

// bytesOf returns the memory of the values. The byte order is the same on all ranks, because they
// run the same program.
func bytesOf[T Number](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*size[T]())
}

// valuesOf is the inverse of bytesOf. The data must be aligned, as the memory of values and scratch
// memory from Go's allocator are.
func valuesOf[T Number](data []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/size[T]())
}
