// Calls MPI. XLA calls collectives from its own threads, and Go moves goroutines between threads:
// MPI must support calls from any thread, one at a time (MPI_THREAD_SERIALIZED).
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"
#include "yield.h"

enum { THREAD_SERIALIZED = 2 };  // In both binary interfaces.

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int running;

int gb_failed(const char *call, int code, char *error, size_t error_size) {
  char text[2048] = "unknown error";  // MPI_MAX_ERROR_STRING is 256 (Open MPI) or 512 (MPICH).
  int length = 0;
  gb_mpi.error_string(code, text, &length);
  snprintf(error, error_size, "rank %d of %d: %s: %s", gb_all_ranks.place, gb_all_ranks.size, call, text);
  return 1;
}

static int serve(gb_request *r) {
  int code = 0;
  gb_wait_begins();
  if (r->kind != GB_MPI_END && r->kind != GB_MPI_FINALIZE && gb_agree(r) != 0) return 1;
  switch (r->kind) {
    case GB_MPI_ALL_REDUCE:
    case GB_MPI_BROADCAST:
    case GB_MPI_ALL_GATHER:
    case GB_MPI_REDUCE_SCATTER:
    case GB_MPI_ALL_TO_ALL: return gb_collect(r);
    case GB_MPI_BARRIER:
      code = gb_mpi.barrier(gb_mpi.world);
      return code == 0 ? 0 : gb_failed("MPI_Barrier", code, r->error, r->error_size);
    case GB_MPI_END:
      // A separate communicator, so as not to match the barrier of a rank that is still working.
      code = gb_mpi.barrier(gb_mpi.end);
      return code == 0 ? 0 : gb_failed("MPI_Barrier", code, r->error, r->error_size);
    case GB_MPI_FINALIZE:
      code = gb_mpi.finalize();
      return code == 0 ? 0 : gb_failed("MPI_Finalize", code, r->error, r->error_size);
  }
  snprintf(r->error, r->error_size, "unknown request %d", r->kind);
  return 1;
}

int gb_mpi_init(int *rank, int *size, char *version, size_t version_size, char *error, size_t error_size) {
  gb_signals_save();
  int provided = 0, code = gb_mpi.init_thread(NULL, NULL, THREAD_SERIALIZED, &provided);
  gb_signals_restore();
  if (code != 0) {
    snprintf(error, error_size, "MPI_Init_thread failed with code %d", code);
    return 1;
  }
  if (provided < THREAD_SERIALIZED) {
    snprintf(error, error_size, "this MPI doesn't support calls from several threads, one at a time (MPI_THREAD_SERIALIZED): use another MPI, or a build with threads");
    return 1;
  }
  gb_mpi.comm_set_errhandler(gb_mpi.world, gb_mpi.errors_return);
  gb_mpi.comm_rank(gb_mpi.world, &gb_all_ranks.place);
  gb_mpi.comm_size(gb_mpi.world, &gb_all_ranks.size);
  gb_all_ranks.comm = gb_mpi.world;
  // A communicator's handle is an int or a pointer, so the word must be zero before MPI writes it.
  code = gb_mpi.comm_dup(gb_mpi.world, &gb_mpi.end);
  if (code == 0) code = gb_mpi.comm_dup(gb_mpi.world, &gb_mpi.agreement);
  if (code != 0) return gb_failed("MPI_Comm_dup", code, error, error_size);
  char text[8192] = "";  // MPI_MAX_LIBRARY_VERSION_STRING is 256 (Open MPI) or 8192 (MPICH).
  int length = 0;
  gb_mpi.get_library_version(text, &length);
  text[strcspn(text, "\n")] = 0;
  snprintf(version, version_size, "%s", text);
  *rank = gb_all_ranks.place;
  *size = gb_all_ranks.size;
  pthread_mutex_lock(&lock);
  running = 1;
  pthread_mutex_unlock(&lock);
  return 0;
}

int gb_mpi_transport(int kind, const void *in, void *out, int64_t count, int dtype, const int64_t *form, char *error,
                     size_t error_size) {
  gb_request r = {.kind = kind, .send = in, .data = out, .count = count, .type = dtype, .form = form, .error = error, .error_size = error_size};
  pthread_mutex_lock(&lock);
  int result = 1, runs = running;
  if (kind == GB_MPI_FINALIZE) running = 0;
  if (running) result = serve(&r);  // The lock makes it the only call.
  pthread_mutex_unlock(&lock);
  if (!runs)
    snprintf(error, error_size, "rank %d of %d: MPI is not running: it was finalized or never started", gb_all_ranks.place, gb_all_ranks.size);
  else if (kind == GB_MPI_FINALIZE)
    result = serve(&r);  // It may never return, so no call waits for it.
  return result;
}
