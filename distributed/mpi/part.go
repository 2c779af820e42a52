package mpi

// #include "mpi.h"
import "C"

// setPart replaces the number of elements that one call of MPI gathers or scatters. Tests use it.
func setPart(n int) { C.gb_mpi_part = C.int64_t(n) }
