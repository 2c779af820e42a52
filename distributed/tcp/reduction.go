package tcp

import (
	"math"
	"unsafe"
)

// element is one that can be reduced. Bytes can't be summed.
type element interface {
	int32 | int64 | float32 | float64 | uint8
}

// reduction combines the elements of two ranks. It leaves the result in into.
type reduction func(into, from []byte)

// The reductions, with the numbers of a transport.
const (
	reduceSum = 0
	reduceMin = 1
	reduceMax = 2
)

// reductionOf returns a reduction of a type.
func reductionOf[T element](number int) reduction {
	switch number {
	case reduceMin:
		return extreme[T](precedes[T])
	case reduceMax:
		return extreme[T](func(a, b T) bool { return precedes(b, a) })
	}
	return add[T]
}

func add[T element](into, from []byte) {
	a, b := valuesOf[T](into), valuesOf[T](from)
	for i := range a {
		a[i] += b[i]
	}
}

// extreme is a minimum or a maximum: NaN if one of the elements is NaN.
func extreme[T element](first func(a, b T) bool) reduction {
	return func(into, from []byte) {
		a, b := valuesOf[T](into), valuesOf[T](from)
		for i := range a {
			if b[i] != b[i] || a[i] == a[i] && first(b[i], a[i]) {
				a[i] = b[i]
			}
		}
	}
}

// precedes reports whether a is less than b. -0 is less than 0.
func precedes[T element](a, b T) bool {
	return a < b || a == 0 && b == 0 && math.Signbit(float64(a)) && !math.Signbit(float64(b))
}

func size[T element | uint32]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// bytesOf returns the memory of the values. The byte order is the same on all ranks, because they
// run the same program.
func bytesOf[T element | uint32](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*size[T]())
}

// valuesOf is the inverse of bytesOf. The data must be aligned, as the memory of values and scratch
// memory from Go's allocator are.
func valuesOf[T element](data []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/size[T]())
}
