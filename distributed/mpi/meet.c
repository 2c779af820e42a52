// How early ranks wait where ranks share CPUs.
//
// Inside a collective, MPICH polls until all ranks are there, and so does Open MPI unless mpirun has
// told it that there are more ranks than CPUs. A rank that polls keeps a CPU that the ranks that it
// waits for need. So the ranks meet first, by a barrier that doesn't block.
#include <sched.h>

#include "request.h"

int gb_mpi_crowded;

int gb_meet(gb_handle comm) {
  if (!gb_mpi_crowded) return 0;
  gb_handle request = 0;  // An int or a pointer.
  int met = 0, code = gb_mpi.ibarrier(comm, &request);
  while (code == 0) {
    code = gb_mpi.test(&request, &met, gb_mpi.no_status);
    if (met) break;
    sched_yield();  // Package yield's, which rests.
  }
  return code;
}
