// How ranks wait that share CPUs.
//
// A rank that polls while it waits keeps a CPU that the ranks that it waits for need. MPICH always
// polls. Open MPI polls unless mpirun has told it that there are more ranks than CPUs, but can be
// told later too. Then it yields (see yield.c).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>

#include "library.h"
#include "yield.h"

// finished waits until a call that didn't block is done. It returns MPI's code.
static int finished(int code, gb_handle *request) {
  gb_wait_begins();
  for (int done = 0; code == 0;) {
    code = gb_mpi.test(request, &done, gb_mpi.no_status);
    if (done) break;
    sched_yield();  // See yield.c.
  }
  return code;
}

static int all_reduce(const void *in, void *out, int n, gb_handle type, gb_handle operation, gb_handle comm) {
  gb_handle request = 0;  // An int or a pointer.
  return finished(gb_mpi.iallreduce(in, out, n, type, operation, comm, &request), &request);
}

static int broadcast(void *data, int n, gb_handle type, int root, gb_handle comm) {
  gb_handle request = 0;
  return finished(gb_mpi.ibcast(data, n, type, root, comm, &request), &request);
}

static int all_gather(const void *in, int sent, gb_handle in_type, void *out, int got, gb_handle out_type, gb_handle comm) {
  gb_handle request = 0;
  return finished(gb_mpi.iallgather(in, sent, in_type, out, got, out_type, comm, &request), &request);
}

static int all_to_all(const void *in, int sent, gb_handle in_type, void *out, int got, gb_handle out_type, gb_handle comm) {
  gb_handle request = 0;
  return finished(gb_mpi.ialltoall(in, sent, in_type, out, got, out_type, comm, &request), &request);
}

static int reduce_scatter_block(const void *in, void *out, int n, gb_handle type, gb_handle operation, gb_handle comm) {
  gb_handle request = 0;
  return finished(gb_mpi.ireduce_scatter_block(in, out, n, type, operation, comm, &request), &request);
}

static int send_and_receive(const void *in, int sent, gb_handle in_type, int to, int in_tag, void *out, int got, gb_handle out_type, int from, int out_tag, gb_handle comm, void *status) {
  (void)status;  // Nobody asks for it.
  gb_handle receive = 0, send = 0;
  int code = gb_mpi.isend(in, sent, in_type, to, in_tag, comm, &send);
  if (code == 0) code = finished(gb_mpi.irecv(out, got, out_type, from, out_tag, comm, &receive), &receive);
  return finished(code, &send);
}

static int barrier(gb_handle comm) {
  gb_handle request = 0;
  return finished(gb_mpi.ibarrier(comm, &request), &request);
}

// dont_block makes calls that don't block, and waits for them.
static void dont_block(void) {
  gb_mpi.allreduce = all_reduce;
  gb_mpi.bcast = broadcast;
  gb_mpi.allgather = all_gather;
  gb_mpi.alltoall = all_to_all;
  gb_mpi.reduce_scatter_block = reduce_scatter_block;
  gb_mpi.sendrecv = send_and_receive;
  gb_mpi.barrier = barrier;
}

void gb_mpi_crowded(void) {
  // Of libopen-pal, in Open MPI 4 and 5 (opal/runtime/opal_progress.h). For large values, it is up
  // to twice as fast as calls that don't block.
  bool (*yield_when_idle)(bool);
  *(void **)&yield_when_idle = dlsym(gb_mpi.handle, "opal_progress_set_yield_when_idle");
  if (yield_when_idle != NULL)
    yield_when_idle(true);
  else
    dont_block();
}
