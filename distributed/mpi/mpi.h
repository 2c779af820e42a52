#ifndef GONBATCH_MPI_H
#define GONBATCH_MPI_H

#include <stddef.h>
#include <stdint.h>

enum gb_kind { GB_MPI_ALL_REDUCE = 1, GB_MPI_BROADCAST, GB_MPI_ALL_GATHER, GB_MPI_BARRIER, GB_MPI_END, GB_MPI_FINALIZE };

// xla::PrimitiveType, as gb_transport of package pjrt has it; GB_BYTE only for broadcast and all-gather.
enum gb_type { GB_BYTE = 6, GB_INT32 = 4, GB_INT64 = 5, GB_FLOAT32 = 11, GB_FLOAT64 = 12 };

// gb_mpi_open opens the MPI library and finds out which binary interface it has. 0, or 1 and a text.
int gb_mpi_open(const char *library, char *error, size_t error_size);

// gb_mpi_init starts the thread that owns MPI and calls MPI_Init_thread on it. 0, or 1 and a text.
int gb_mpi_init(int *rank, int *size, char *version, size_t version_size, char *error, size_t error_size);

// gb_mpi_call runs one collective on MPI's thread and waits for it. send is used by all-gather only; count is
// in elements (bytes for all-gather: of each rank). May be called from any thread. 0, or 1 and a text.
int gb_mpi_call(int kind, const void *send, void *data, int64_t count, int type, int root, char *error,
                size_t error_size);

// gb_mpi_all_reduce is gb_mpi_call in the form that package pjrt calls a transport: a sum in place.
int gb_mpi_all_reduce(void *data, int64_t count, int dtype, char *error, size_t error_size);

// gb_mpi_abort ends all ranks at once; it does not return.
void gb_mpi_abort(int code);

#endif
