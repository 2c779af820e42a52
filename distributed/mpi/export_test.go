package mpi

import (
	"time"
	"unsafe"
)

// number is an element type that MPI can sum.
type number interface {
	int32 | int64 | float32 | float64
}

// AllReduce is Comm.AllReduce for any type.
func AllReduce[T number](c *Comm, values []T) error {
	if len(values) == 0 {
		return nil
	}
	return c.call(1, nil, unsafe.Pointer(&values[0]), len(values), typeOf(values), 0)
}

// ReduceScatter is a reduce-scatter of the host, which has no use for one.
func ReduceScatter[T number](c *Comm, in, out []T) error {
	if len(out) == 0 {
		return nil
	}
	return c.call(5, unsafe.Pointer(&in[0]), unsafe.Pointer(&out[0]), len(out), typeOf(out), 0)
}

// typeOf returns the number of xla::PrimitiveType.
func typeOf[T number](values []T) int {
	switch any(values).(type) {
	case []int32:
		return 4
	case []int64:
		return 5
	case []float32:
		return 11
	}
	return 12
}

// SetPart makes AllGather and ReduceScatter use more MPI calls.
var SetPart = setPart

// SetChunk makes AllReduce and Broadcast use more MPI calls.
var SetChunk = setChunk

// SetShare makes reductions proceed in shares.
var SetShare = setShare

// Share is what SetShare, or Comm.InMemory, has set.
var Share = share

// SetFinalizeTime changes how long Close waits.
func SetFinalizeTime(d time.Duration) { finalizeTime = d }

// InProgram runs a collective as a compiled program does.
var InProgram = inProgram

// FunctionsAreFound reports whether libraries that are opened at run time call this package's
// sched_yield and pthread_setname_np.
var FunctionsAreFound = functionsAreFound
