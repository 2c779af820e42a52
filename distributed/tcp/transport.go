package tcp

// #include <stddef.h>
// #include <stdint.h>
//
// extern int gonbatchTCPAllReduce(void *data, int64_t count, int dtype, char *error, size_t error_size);
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// inPrograms is the ring that the compiled programs of this process use.
var inPrograms atomic.Pointer[Comm]

// Transport returns the C function that compiled programs call to all-reduce over this ring. See
// Transport in package pjrt.
func (c *Comm) Transport() unsafe.Pointer {
	inPrograms.Store(c)
	return C.gonbatchTCPAllReduce
}

// The element types of a transport, with XLA's numbers.
const (
	typeInt32   = 4
	typeInt64   = 5
	typeFloat32 = 11
	typeFloat64 = 12
)

//export gonbatchTCPAllReduce
func gonbatchTCPAllReduce(data unsafe.Pointer, count C.int64_t, dtype C.int, text *C.char, textSize C.size_t) C.int {
	err := allReduceMemory(inPrograms.Load(), data, int(count), int(dtype))
	if err == nil {
		return 0
	}
	out := unsafe.Slice((*byte)(unsafe.Pointer(text)), int(textSize))
	out[copy(out[:len(out)-1], err.Error())] = 0
	return 1
}

func allReduceMemory(c *Comm, data unsafe.Pointer, count, dtype int) error {
	switch dtype {
	case typeInt32:
		return AllReduce(c, unsafe.Slice((*int32)(data), count))
	case typeInt64:
		return AllReduce(c, unsafe.Slice((*int64)(data), count))
	case typeFloat32:
		return AllReduce(c, unsafe.Slice((*float32)(data), count))
	case typeFloat64:
		return AllReduce(c, unsafe.Slice((*float64)(data), count))
	}
	return fmt.Errorf("tcp: rank %d of %d: unsupported element type %d", c.rank, c.size, dtype)
}
