// Package cpulib says which convolutions a library computes for this process's programs, so that a
// layer can leave them whole.
//
//	cpulib.Use(func(c cpulib.Convolution) bool { return isFast(c) })   // in package distributed
//	if cpulib.Convolves(c) {
//		return convolve(x, w)   // in a layer: not as many small operations
//	}
package cpulib

import "sync/atomic"

// Convolution is a convolution of float32 images [Batch, Height, Width, In], with zeros around
// them, with kernels [Rows, Columns, In, Out].
type Convolution struct {
	Batch, Height, Width, In, Out int
	Rows, Columns                 int
	Stride                        [2]int    // Down and to the right.
	Padding                       [2][2]int // Zeros before and after the rows, and the columns.
}

var convolves atomic.Pointer[func(Convolution) bool]

// Use sets which convolutions a library computes, faster than XLA, in the programs that are built
// from now on; none if f is nil.
func Use(f func(Convolution) bool) {
	if f == nil {
		convolves.Store(nil)
		return
	}
	convolves.Store(&f)
}

// Convolves reports whether a library computes a convolution.
func Convolves(c Convolution) bool {
	f := convolves.Load()
	return f != nil && (*f)(c)
}
