package mpi

// #include "mpi.h"
// #include "yield.h"
import "C"

import (
	"errors"
	"unsafe"
)

// Tests use these functions.

// setPart replaces the number of elements that one call of MPI gathers or scatters.
func setPart(n int) { C.gb_mpi_part = C.int64_t(n) }

// setChunk replaces the number of bytes that one call of MPI sums or broadcasts.
func setChunk(bytes int) { C.gb_mpi_chunk = C.int64_t(bytes) }

// setShare replaces the number of bytes, for each rank, that reductions take at a time.
func setShare(bytes int) { C.gb_mpi_share = C.int64_t(bytes) }

func share() int { return int(C.gb_mpi_share) }

// inProgram runs a collective as a compiled program does: see Transport in package pjrt.
func inProgram(kind int, in, out []int32, count int, form []int64) error {
	var text [errorSize]C.char
	if C.gb_mpi_transport(C.int(kind), unsafe.Pointer(&in[0]), unsafe.Pointer(&out[0]), C.int64_t(count), C.GB_INT32, (*C.int64_t)(&form[0]), &text[0], errorSize) != 0 {
		return errors.New(C.GoString(&text[0]))
	}
	return nil
}

func functionsAreFound() bool { return C.gb_functions_are_found() != 0 }
