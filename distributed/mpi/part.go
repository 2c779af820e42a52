package mpi

// #include "mpi.h"
import "C"

// Tests use these functions.

// setPart replaces the number of elements that one call of MPI gathers or scatters.
func setPart(n int) { C.gb_mpi_part = C.int64_t(n) }

// onlyFunneled makes Init ask for MPI_THREAD_FUNNELED.
func onlyFunneled() { C.gb_mpi_level = 1 }
