#ifndef GONBATCH_MPI_LIBRARY_H
#define GONBATCH_MPI_LIBRARY_H

#include <stdint.h>

#include "mpi.h"

typedef uintptr_t gb_handle;

// GB_MPI_FUNCTIONS are the functions of MPI that are used: the field, the symbol and the parameters
// of each.
#define GB_MPI_FUNCTIONS(F) \
  F(init_thread, MPI_Init_thread, (int *, char ***, int, int *)) \
  F(finalize, MPI_Finalize, (void)) \
  F(comm_rank, MPI_Comm_rank, (gb_handle, int *)) \
  F(comm_size, MPI_Comm_size, (gb_handle, int *)) \
  F(comm_dup, MPI_Comm_dup, (gb_handle, gb_handle *)) \
  F(comm_split, MPI_Comm_split, (gb_handle, int, int, gb_handle *)) \
  F(comm_set_errhandler, MPI_Comm_set_errhandler, (gb_handle, gb_handle)) \
  F(error_string, MPI_Error_string, (int, char *, int *)) \
  F(get_library_version, MPI_Get_library_version, (char *, int *)) \
  F(allreduce, MPI_Allreduce, (const void *, void *, int, gb_handle, gb_handle, gb_handle)) \
  F(bcast, MPI_Bcast, (void *, int, gb_handle, int, gb_handle)) \
  F(allgather, MPI_Allgather, (const void *, int, gb_handle, void *, int, gb_handle, gb_handle)) \
  F(alltoall, MPI_Alltoall, (const void *, int, gb_handle, void *, int, gb_handle, gb_handle)) \
  F(op_create, MPI_Op_create, (void *, int, gb_handle *)) \
  F(reduce_scatter_block, MPI_Reduce_scatter_block, (const void *, void *, int, gb_handle, gb_handle, gb_handle)) \
  F(sendrecv, MPI_Sendrecv, (const void *, int, gb_handle, int, int, void *, int, gb_handle, int, int, gb_handle, void *)) \
  F(reduce_local, MPI_Reduce_local, (const void *, void *, int, gb_handle, gb_handle)) \
  F(barrier, MPI_Barrier, (gb_handle)) \
  F(iallreduce, MPI_Iallreduce, (const void *, void *, int, gb_handle, gb_handle, gb_handle, gb_handle *)) \
  F(ibcast, MPI_Ibcast, (void *, int, gb_handle, int, gb_handle, gb_handle *)) \
  F(iallgather, MPI_Iallgather, (const void *, int, gb_handle, void *, int, gb_handle, gb_handle, gb_handle *)) \
  F(ialltoall, MPI_Ialltoall, (const void *, int, gb_handle, void *, int, gb_handle, gb_handle, gb_handle *)) \
  F(ireduce_scatter_block, MPI_Ireduce_scatter_block, (const void *, void *, int, gb_handle, gb_handle, gb_handle, gb_handle *)) \
  F(isend, MPI_Isend, (const void *, int, gb_handle, int, int, gb_handle, gb_handle *)) \
  F(irecv, MPI_Irecv, (void *, int, gb_handle, int, int, gb_handle, gb_handle *)) \
  F(ibarrier, MPI_Ibarrier, (gb_handle, gb_handle *)) \
  F(test, MPI_Test, (gb_handle *, int *, void *))

// gb_library is the open MPI library: its functions, and its handles of communicators, types and
// operations.
struct gb_library {
  void *handle;
  gb_handle world, end, agreement, byte, uint8, int32, int64, float32, float64, sum, min, max, errors_return;
  void *in_place, *no_status;
#define FIELD(field, symbol, parameters) int(*field) parameters;
  GB_MPI_FUNCTIONS(FIELD)
#undef FIELD
};

extern struct gb_library gb_mpi;

// gb_signals_save saves the signal handlers of the process. gb_signals_restore restores those that
// have changed since.
void gb_signals_save(void);
void gb_signals_restore(void);

#endif
