// Package yield replaces sched_yield, in the whole program: a thread that waits for other ranks or
// threads by calling it in a loop sleeps, after a millisecond, for up to a millisecond at a time. So
// a training that waits leaves the CPUs to the other programs of the machine.
//
// There is nothing to call: in a program that imports the package, MPI and XLA's plugin wait that
// way.
package yield

/*
#cgo LDFLAGS: -ldl -lpthread
#include "yield.h"
*/
import "C"

// Found reports whether libraries that are opened at run time find this version of sched_yield. In
// binaries that Go's own linker has linked, such as those of the kernel's cells, they don't.
func Found() bool { return C.gb_yield_is_found() != 0 }
