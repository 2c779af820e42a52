package tcp

// #include <stddef.h>
// #include <stdint.h>
//
// extern int gonbatchTCPTransport(int kind, void *in, void *out, int64_t count, int dtype, char *error, size_t error_size);
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// inPrograms is the ring that the compiled programs of this process use.
var inPrograms atomic.Pointer[Comm]

// Transport returns the C function that compiled programs call for collectives over this ring.
// See Transport in package pjrt.
func (c *Comm) Transport() unsafe.Pointer {
	inPrograms.Store(c)
	return C.gonbatchTCPTransport
}

// The collectives of a transport.
const (
	kindAllReduce     = 1
	kindAllGather     = 3
	kindReduceScatter = 5
)

// The element types of a transport, with XLA's numbers.
const (
	typeInt32    = 4
	typeInt64    = 5
	typeFloat16  = 10
	typeFloat32  = 11
	typeFloat64  = 12
	typeBFloat16 = 16
)

var sizes = map[int]int{typeInt32: 4, typeInt64: 8, typeFloat16: 2, typeFloat32: 4, typeFloat64: 8, typeBFloat16: 2}

//export gonbatchTCPTransport
func gonbatchTCPTransport(kind C.int, in, out unsafe.Pointer, count C.int64_t, dtype C.int, text *C.char, textSize C.size_t) C.int {
	err := collect(inPrograms.Load(), int(kind), in, out, int(count), int(dtype))
	if err == nil {
		return 0
	}
	to := unsafe.Slice((*byte)(unsafe.Pointer(text)), int(textSize))
	to[copy(to[:len(to)-1], err.Error())] = 0
	return 1
}

// collect runs a collective on the memory of a program.
func collect(c *Comm, kind int, in, out unsafe.Pointer, count, dtype int) error {
	if kind == kindAllGather && sizes[dtype] > 0 {
		bytes := count * sizes[dtype]
		return c.gather(unsafe.Slice((*byte)(in), bytes), unsafe.Slice((*byte)(out), bytes*c.size))
	}
	switch dtype {
	case typeInt32:
		return reduceMemory[int32](c, kind, in, out, count)
	case typeInt64:
		return reduceMemory[int64](c, kind, in, out, count)
	case typeFloat32:
		return reduceMemory[float32](c, kind, in, out, count)
	case typeFloat64:
		return reduceMemory[float64](c, kind, in, out, count)
	}
	return fmt.Errorf("tcp: rank %d of %d: unsupported element type %d", c.rank, c.size, dtype)
}

func reduceMemory[T Number](c *Comm, kind int, in, out unsafe.Pointer, count int) error {
	result := unsafe.Slice((*T)(out), count)
	switch kind {
	case kindAllReduce:
		return AllReduce(c, result)
	case kindReduceScatter:
		return ReduceScatter(c, unsafe.Slice((*T)(in), count*c.size), result)
	}
	return fmt.Errorf("tcp: rank %d of %d: unsupported collective %d", c.rank, c.size, kind)
}
