#ifndef GONBATCH_MPI_H
#define GONBATCH_MPI_H

#include <stddef.h>
#include <stdint.h>

// The first ones have the numbers of gb_transport in package pjrt.
enum gb_kind { GB_MPI_ALL_REDUCE = 1, GB_MPI_BROADCAST, GB_MPI_ALL_GATHER, GB_MPI_BARRIER, GB_MPI_REDUCE_SCATTER, GB_MPI_ALL_TO_ALL, GB_MPI_END, GB_MPI_FINALIZE };

// The numbers of xla::PrimitiveType, as for gb_transport in package pjrt. GB_BYTE can't be summed,
// and half precision is only for the collectives of a transport that move values.
enum gb_type { GB_BYTE = 6, GB_INT32 = 4, GB_INT64 = 5, GB_FLOAT32 = 11, GB_FLOAT64 = 12, GB_FLOAT16 = 10, GB_BFLOAT16 = 16 };

// gb_mpi_open opens the MPI library and detects its binary interface. It returns 0, or 1 and an
// error text.
int gb_mpi_open(const char *library, char *error, size_t error_size);

// gb_mpi_init initialises MPI. Only the thread that calls it may finalize MPI later. It returns 0,
// or 1 and an error text.
int gb_mpi_init(int *rank, int *size, char *version, size_t version_size, char *error, size_t error_size);

// gb_mpi_transport is a transport of package pjrt. It runs the other kinds too, which take no
// values. It may be called from any thread.
int gb_mpi_transport(int kind, const void *in, void *out, int64_t count, int dtype, const int64_t *form, char *error,
                     size_t error_size);

// gb_mpi_part is the number of elements, of all ranks together, that one call of MPI gathers,
// scatters or exchanges, because MPI counts with 32 bits.
extern int64_t gb_mpi_part;

// gb_mpi_chunk is the number of bytes that one call of MPI sums or broadcasts, at most.
extern int64_t gb_mpi_chunk;

// gb_mpi_share is the number of bytes, for each rank, that reductions of large values reduce at a
// time; 0 if the ranks are on several machines. All ranks must have the same.
extern int64_t gb_mpi_share;

// gb_mpi_crowded says that the ranks of a machine outnumber its CPUs: a rank must not keep a CPU
// while it waits for others. All ranks must call it between the same calls.
void gb_mpi_crowded(void);

#endif
