package tcp

// #include <stddef.h>
// #include <stdint.h>
//
// extern int gonbatchTCPTransport(int kind, void *in, void *out, int64_t count, int dtype, int64_t *form, char *error, size_t error_size);
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
	kindBroadcast     = 2
	kindAllGather     = 3
	kindReduceScatter = 5
	kindAllToAll      = 6
)

// names are those of the collectives, for errors.
var names = map[int]string{kindAllReduce: "all-reduce", kindBroadcast: "broadcast", kindAllGather: "all-gather", kindReduceScatter: "reduce-scatter", kindAllToAll: "all-to-all"}

// The element types of a transport, with XLA's numbers.
const (
	typeInt32    = 4
	typeInt64    = 5
	typeUint8    = 6
	typeFloat16  = 10
	typeFloat32  = 11
	typeFloat64  = 12
	typeBFloat16 = 16
)

var sizes = map[int]int{typeInt32: 4, typeInt64: 8, typeUint8: 1, typeFloat16: 2, typeFloat32: 4, typeFloat64: 8, typeBFloat16: 2}

var typeNames = map[int]string{typeInt32: "int32", typeInt64: "int64", typeUint8: "uint8", typeFloat16: "float16", typeFloat32: "float32", typeFloat64: "float64", typeBFloat16: "bfloat16"}

//export gonbatchTCPTransport
func gonbatchTCPTransport(kind C.int, in, out unsafe.Pointer, count C.int64_t, dtype C.int, form *C.int64_t, text *C.char, textSize C.size_t) C.int {
	call := call{kind: int(kind), in: in, out: out, bytes: int(count) * sizes[int(dtype)], dtype: int(dtype)}
	call.read((*int64)(unsafe.Pointer(form)))
	err := call.run(inPrograms.Load())
	if err == nil {
		return 0
	}
	to := unsafe.Slice((*byte)(unsafe.Pointer(text)), int(textSize))
	to[copy(to[:len(to)-1], err.Error())] = 0
	return 1
}

// call is a collective on the memory of a program: see Transport in package pjrt.
type call struct {
	kind            int
	in, out         unsafe.Pointer
	bytes           int // Of count elements.
	dtype           int
	reduction, root int
	places          []int64 // Nil for all ranks.
}

// read reads the form, which may be nil.
func (l *call) read(form *int64) {
	if form == nil {
		return
	}
	numbers := unsafe.Slice(form, 4)
	l.reduction, l.root = int(numbers[1]), int(numbers[2])
	if ranks := int(numbers[3]); ranks > 0 {
		l.places = unsafe.Slice(form, 4+2*ranks)[4:]
	}
}

func (l *call) run(c *Comm) error {
	if sizes[l.dtype] == 0 {
		return fmt.Errorf("tcp: rank %d of %d: unsupported element type %d", c.rank, c.size, l.dtype)
	}
	name, ok := names[l.kind]
	if !ok {
		return fmt.Errorf("tcp: rank %d of %d: unsupported collective %d", c.rank, c.size, l.kind)
	}
	return c.do(name, func() error {
		t := c.world
		if l.places != nil {
			var err error
			if t, err = c.teamOf(l.places); err != nil {
				return err
			}
		}
		return l.over(t)
	})
}

// over runs the collective over a team.
func (l *call) over(t *team) error {
	whole := l.bytes * t.size()
	if t.size() == 1 {
		if l.in != nil {
			copy(l.at(l.out, l.bytes), l.at(l.in, l.bytes))
		}
		return nil
	}
	switch l.kind {
	case kindBroadcast:
		return t.broadcast(l.dtype, l.at(l.out, l.bytes), l.root)
	case kindAllGather:
		var own []byte
		if l.in != nil {
			own = l.at(l.in, l.bytes)
		}
		return t.gather(l.dtype, own, l.at(l.out, whole))
	case kindAllToAll:
		return t.allToAll(l.dtype, l.at(l.in, whole), l.at(l.out, whole))
	}
	of, ok := reductions[l.dtype]
	if !ok {
		return fmt.Errorf("elements of type %d can't be reduced", l.dtype)
	}
	reduce, i := of(l.reduction), intent{kind: l.kind, reduction: l.reduction, dtype: l.dtype}
	if l.kind == kindAllReduce {
		return t.allReduce(i, reduce, l.at(l.out, l.bytes))
	}
	return t.scatter(i, reduce, l.at(l.in, whole), l.at(l.out, l.bytes))
}

// reductions are those of the types whose elements can be reduced, by their numbers.
var reductions = map[int]func(number int) reduction{
	typeInt32: reductionOf[int32], typeInt64: reductionOf[int64], typeUint8: reductionOf[uint8],
	typeFloat32: reductionOf[float32], typeFloat64: reductionOf[float64],
}

func (l *call) at(memory unsafe.Pointer, bytes int) []byte {
	return unsafe.Slice((*byte)(memory), bytes)
}
