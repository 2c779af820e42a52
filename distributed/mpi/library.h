#ifndef GONBATCH_MPI_LIBRARY_H
#define GONBATCH_MPI_LIBRARY_H

#include <stdint.h>

#include "mpi.h"

typedef uintptr_t gb_handle;

// gb_library is the open MPI library: its functions, and its handles of communicators, types and
// operations.
struct gb_library {
  void *handle;
  gb_handle world, end, agreement, byte, uint8, int32, int64, float32, float64, sum, min, max, errors_return;
  void *in_place, *no_status;
  int (*init_thread)(int *, char ***, int, int *);
  int (*initialized)(int *);
  int (*finalize)(void);
  int (*abort)(gb_handle, int);
  int (*comm_rank)(gb_handle, int *);
  int (*comm_size)(gb_handle, int *);
  int (*comm_dup)(gb_handle, gb_handle *);
  int (*comm_split)(gb_handle, int, int, gb_handle *);
  int (*comm_set_errhandler)(gb_handle, gb_handle);
  int (*error_string)(int, char *, int *);
  int (*get_library_version)(char *, int *);
  int (*allreduce)(const void *, void *, int, gb_handle, gb_handle, gb_handle);
  int (*bcast)(void *, int, gb_handle, int, gb_handle);
  int (*allgather)(const void *, int, gb_handle, void *, int, gb_handle, gb_handle);
  int (*alltoall)(const void *, int, gb_handle, void *, int, gb_handle, gb_handle);
  int (*op_create)(void *, int, gb_handle *);
  int (*reduce_scatter_block)(const void *, void *, int, gb_handle, gb_handle, gb_handle);
  int (*sendrecv)(const void *, int, gb_handle, int, int, void *, int, gb_handle, int, int, gb_handle, void *);
  int (*reduce_local)(const void *, void *, int, gb_handle, gb_handle);
  int (*barrier)(gb_handle);
  int (*iallreduce)(const void *, void *, int, gb_handle, gb_handle, gb_handle, gb_handle *);
  int (*ibcast)(void *, int, gb_handle, int, gb_handle, gb_handle *);
  int (*iallgather)(const void *, int, gb_handle, void *, int, gb_handle, gb_handle, gb_handle *);
  int (*ialltoall)(const void *, int, gb_handle, void *, int, gb_handle, gb_handle, gb_handle *);
  int (*ireduce_scatter_block)(const void *, void *, int, gb_handle, gb_handle, gb_handle, gb_handle *);
  int (*isend)(const void *, int, gb_handle, int, int, gb_handle, gb_handle *);
  int (*irecv)(void *, int, gb_handle, int, int, gb_handle, gb_handle *);
  int (*ibarrier)(gb_handle, gb_handle *);
  int (*test)(gb_handle *, int *, void *);
};

extern struct gb_library gb_mpi;

#endif
