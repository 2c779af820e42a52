// Package memory replaces malloc, in the whole program, for blocks of 4 MiB and more. XLA takes and
// gives back the same large buffers in each step, so they stay in the process, in a pool of huge
// pages. Small blocks are still those of the C library, whose heap gets huge pages too.
//
// There is nothing to call: a program that imports the package has the pool.
package memory

/*
#cgo LDFLAGS: -ldl
*/
import "C"
