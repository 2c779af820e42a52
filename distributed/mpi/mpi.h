#ifndef GONBATCH_MPI_H
#define GONBATCH_MPI_H

#include <stddef.h>
#include <stdint.h>

enum gb_kind { GB_MPI_ALL_REDUCE = 1, GB_MPI_BROADCAST, GB_MPI_ALL_GATHER, GB_MPI_BARRIER, GB_MPI_END, GB_MPI_FINALIZE };

// The numbers of xla::PrimitiveType, as for gb_transport in package pjrt. GB_BYTE is only for
// broadcast and all-gather.
enum gb_type { GB_BYTE = 6, GB_INT32 = 4, GB_INT64 = 5, GB_FLOAT32 = 11, GB_FLOAT64 = 12 };

// gb_mpi_open opens the MPI library and detects its binary interface. It returns 0, or 1 and an
// error text.
int gb_mpi_open(const char *library, char *error, size_t error_size);

// gb_mpi_init starts the thread that owns MPI and calls MPI_Init_thread on it. It returns 0, or 1
// and an error text.
int gb_mpi_init(int *rank, int *size, char *version, size_t version_size, char *error, size_t error_size);

// gb_mpi_call runs one collective on MPI's thread and waits for it. Only all-gather uses send.
// count is in elements, for all-gather in bytes per rank. It may be called from any thread. It
// returns 0, or 1 and an error text.
int gb_mpi_call(int kind, const void *send, void *data, int64_t count, int type, int root, char *error,
                size_t error_size);

// gb_mpi_all_reduce is gb_mpi_call as a transport of package pjrt: it sums in place.
int gb_mpi_all_reduce(void *data, int64_t count, int dtype, char *error, size_t error_size);

// gb_mpi_abort ends all ranks at once. It does not return.
void gb_mpi_abort(int code);

#endif
