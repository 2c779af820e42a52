// Package cmath computes in C.
package cmath

/*
#cgo LDFLAGS: -lm
#include <math.h>

static double hypotenuse(double a, double b) { return sqrt(a * a + b * b); }
*/
import "C"

// Hypot returns the length of the hypotenuse.
func Hypot(a, b float64) float64 { return float64(C.hypotenuse(C.double(a), C.double(b))) }
