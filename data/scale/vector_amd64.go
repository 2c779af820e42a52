//go:build cgo

package scale

/*
#include "vector.h"
#cgo noescape gb_scale_bilinear
#cgo nocallback gb_scale_bilinear
*/
import "C"

import (
	"image"
	"unsafe"
)

// taps are means in one piece of memory, all of the same even number of neighbors.
type taps struct {
	n       int
	first   []int32
	weights []int16 // n for each mean.
}

// tapsOf returns the taps of means over old pixels; false if the old ones are too few.
func tapsOf(means []mean, old int) (t taps, ok bool) {
	t.n = (longest(means) + 1) &^ 1
	if t.n > old {
		return t, false
	}
	t.first, t.weights = make([]int32, len(means)), make([]int16, len(means)*t.n)
	for i, m := range means {
		first := min(m.first, old-t.n)
		t.first[i] = int32(first)
		for k, weight := range m.weights {
			t.weights[i*t.n+m.first-first+k] = int16(weight)
		}
	}
	return t, true
}

func longest(rows []mean) int {
	n := 0
	for _, m := range rows {
		n = max(n, len(m.weights))
	}
	return n
}

// vectorized is Bilinear in C, in a third of the time. It returns false if an image is too small.
func vectorized(to, from *image.RGBA, columns, rows []mean) bool {
	wide, ok := tapsOf(columns, from.Rect.Dx())
	high, enough := tapsOf(rows, from.Rect.Dy())
	if !ok || !enough || len(columns) == 0 || len(rows) == 0 {
		return false
	}
	kept := make([]byte, high.n*((4*len(columns)+15)&^15))
	C.gb_scale_bilinear(bytes(to.Pix), C.ptrdiff_t(to.Stride), bytes(from.Pix), C.ptrdiff_t(from.Stride),
		numbers(wide.first), shorts(wide.weights), C.int(len(columns)), C.int(wide.n),
		numbers(high.first), shorts(high.weights), C.int(len(rows)), C.int(high.n), bytes(kept))
	return true
}

func bytes(s []byte) *C.uint8_t    { return (*C.uint8_t)(unsafe.Pointer(&s[0])) }
func numbers(s []int32) *C.int32_t { return (*C.int32_t)(unsafe.Pointer(&s[0])) }
func shorts(s []int16) *C.int16_t  { return (*C.int16_t)(unsafe.Pointer(&s[0])) }
