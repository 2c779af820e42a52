package layerhooks

import "sync/atomic"

// Convolution is a convolution of float32 images [Batch, Height, Width, In], with zeros around
// them, with kernels [Rows, Columns, In, Out].
type Convolution struct {
	Batch, Height, Width, In, Out int
	Rows, Columns                 int
	Stride                        [2]int    // Down and to the right.
	Padding                       [2][2]int // Zeros before and after the rows, and the columns.
}

// convolves is nil if there is no such library.
var convolves atomic.Pointer[func(Convolution) bool]

// SetConvolves sets which convolutions a library computes, faster than XLA, in the programs that
// are built from now on; none if f is nil.
func SetConvolves(f func(Convolution) bool) {
	if f == nil {
		convolves.Store(nil)
		return
	}
	convolves.Store(&f)
}

// Convolves reports whether a library computes a convolution, so that a layer can leave it whole
// instead of using many small operations.
func Convolves(c Convolution) bool {
	f := convolves.Load()
	return f != nil && (*f)(c)
}
