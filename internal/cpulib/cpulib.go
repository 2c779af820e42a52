// Package cpulib says whether a library computes the convolutions of this process's programs, so
// that a layer can leave them whole.
//
//	cpulib.Convolve(true)      // in package distributed
//	if cpulib.Convolves() {
//		return convolve(x, w)   // in a layer: not as many small operations
//	}
package cpulib

import "sync/atomic"

var convolve atomic.Bool

// Convolve sets whether a library computes float32 convolutions in the programs that are built from
// now on.
func Convolve(on bool) { convolve.Store(on) }

// Convolves reports what Convolve has set last; false if nothing.
func Convolves() bool { return convolve.Load() }
