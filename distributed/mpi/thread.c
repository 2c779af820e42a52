// The thread that initialises and finalizes MPI.
//
// XLA calls collectives from its own threads, and Go moves goroutines between threads. If the MPI
// library supports calls from any thread, one at a time (MPI_THREAD_SERIALIZED), they are made
// there. Otherwise this thread makes them all, for which MPI_THREAD_FUNNELED is enough. That takes
// longer: where a rank has one core, a call then waits for two switches between threads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "signals.h"

enum { THREAD_FUNNELED = 1, MAX_CHUNK = 1 << 30 };

int gb_mpi_level = GB_MPI_SERIALIZED;

struct request {
  int kind;
  const void *send;
  void *data;
  int64_t count;
  int type, root;
  char *error;
  size_t error_size;
  int result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct request *pending;  // MPI's thread sets it to NULL when the request is done.
static int world_rank = -1, world_size, running;
static int serialized;  // Whether any thread may call MPI.

static struct {
  char *version, *error;
  size_t version_size, error_size;
  int result, done;
} start;

static int failed(const char *call, int code, char *error, size_t error_size) {
  char text[2048] = "unknown error";  // MPI_MAX_ERROR_STRING is 256 (Open MPI) or 512 (MPICH).
  int length = 0;
  gb_mpi.error_string(code, text, &length);
  snprintf(error, error_size, "rank %d of %d: %s: %s", world_rank, world_size, call, text);
  return 1;
}

static gb_handle mpi_type(int type, size_t *size) {
  switch (type) {
    case GB_BYTE: *size = 1; return gb_mpi.byte;
    case GB_INT32: *size = 4; return gb_mpi.int32;
    case GB_INT64: *size = 8; return gb_mpi.int64;
    case GB_FLOAT32: *size = 4; return gb_mpi.float32;
    case GB_FLOAT64: *size = 8; return gb_mpi.float64;
  }
  *size = 0;
  return 0;
}

static int all_reduce(struct request *r, gb_handle type, size_t size) {
  for (int64_t done = 0; done < r->count; done += MAX_CHUNK) {
    int64_t n = r->count - done < MAX_CHUNK ? r->count - done : MAX_CHUNK;
    int code = gb_mpi.allreduce(gb_mpi.in_place, (char *)r->data + (size_t)done * size, (int)n, type, gb_mpi.sum, gb_mpi.world);
    if (code != 0) return failed("MPI_Allreduce", code, r->error, r->error_size);
  }
  return 0;
}

static int broadcast(struct request *r, gb_handle type, size_t size) {
  for (int64_t done = 0; done < r->count; done += MAX_CHUNK) {
    int64_t n = r->count - done < MAX_CHUNK ? r->count - done : MAX_CHUNK;
    int code = gb_mpi.bcast((char *)r->data + (size_t)done * size, (int)n, type, r->root, gb_mpi.world);
    if (code != 0) return failed("MPI_Bcast", code, r->error, r->error_size);
  }
  return 0;
}

// many calls MPI for an all-gather or a reduce-scatter of n elements a rank.
static int many(struct request *r, const void *in, void *out, int n, gb_handle type) {
  int code;
  if (r->kind == GB_MPI_ALL_GATHER) {
    code = gb_mpi.allgather(in, n, type, out, n, type, gb_mpi.world);
    return code == 0 ? 0 : failed("MPI_Allgather", code, r->error, r->error_size);
  }
  code = gb_mpi.reduce_scatter_block(in, out, n, type, gb_mpi.sum, gb_mpi.world);
  return code == 0 ? 0 : failed("MPI_Reduce_scatter_block", code, r->error, r->error_size);
}

int64_t gb_mpi_part = 1 << 27;

// in_parts runs an all-gather or a reduce-scatter. If there are too many elements, each call of MPI
// takes as many of each rank's, which are put together in other memory.
static int in_parts(struct request *r, gb_handle type, size_t size) {
  int64_t most = gb_mpi_part / world_size > 0 ? gb_mpi_part / world_size : 1;
  if (r->count <= most) return many(r, r->send, r->data, (int)r->count, type);
  char *together = malloc((size_t)most * size * (size_t)world_size);
  if (together == NULL) {
    snprintf(r->error, r->error_size, "rank %d of %d: out of memory", world_rank, world_size);
    return 1;
  }
  int result = 0;
  for (int64_t done = 0; done < r->count && result == 0; done += most) {
    int64_t n = r->count - done < most ? r->count - done : most;
    size_t part = (size_t)n * size, whole = (size_t)r->count * size, at = (size_t)done * size;
    if (r->kind == GB_MPI_ALL_GATHER) {
      result = many(r, (const char *)r->send + at, together, (int)n, type);
      for (int i = 0; i < world_size; i++) memcpy((char *)r->data + (size_t)i * whole + at, together + (size_t)i * part, part);
    } else {
      for (int i = 0; i < world_size; i++) memcpy(together + (size_t)i * part, (const char *)r->send + (size_t)i * whole + at, part);
      result = many(r, together, (char *)r->data + at, (int)n, type);
    }
  }
  free(together);
  return result;
}

static int serve(struct request *r) {
  int code = 0;
  size_t size = 1;
  gb_handle type = mpi_type(r->type, &size);
  if (size == 0) {
    snprintf(r->error, r->error_size, "rank %d of %d: unsupported element type %d", world_rank, world_size, r->type);
    return 1;
  }
  switch (r->kind) {
    case GB_MPI_ALL_REDUCE: return all_reduce(r, type, size);
    case GB_MPI_BROADCAST: return broadcast(r, type, size);
    case GB_MPI_ALL_GATHER:
    case GB_MPI_REDUCE_SCATTER: return in_parts(r, type, size);
    case GB_MPI_BARRIER:
      code = gb_mpi.barrier(gb_mpi.world);
      return code == 0 ? 0 : failed("MPI_Barrier", code, r->error, r->error_size);
    case GB_MPI_END:
      // A separate communicator, so as not to match the barrier of a rank that is still working.
      code = gb_mpi.barrier(gb_mpi.end);
      return code == 0 ? 0 : failed("MPI_Barrier", code, r->error, r->error_size);
    case GB_MPI_FINALIZE:
      running = 0;
      code = gb_mpi.finalize();
      return code == 0 ? 0 : failed("MPI_Finalize", code, r->error, r->error_size);
  }
  snprintf(r->error, r->error_size, "unknown request %d", r->kind);
  return 1;
}

static int initialise(void) {
  gb_signals_save();
  int provided = 0, code = gb_mpi.init_thread(NULL, NULL, gb_mpi_level, &provided);
  gb_signals_restore();
  if (code != 0) {
    snprintf(start.error, start.error_size, "MPI_Init_thread failed with code %d", code);
    return 1;
  }
  if (provided < THREAD_FUNNELED) {
    snprintf(start.error, start.error_size, "this MPI has no thread support (MPI_THREAD_FUNNELED is needed)");
    return 1;
  }
  serialized = gb_mpi_level >= GB_MPI_SERIALIZED && provided >= GB_MPI_SERIALIZED;
  gb_mpi.comm_set_errhandler(gb_mpi.world, gb_mpi.errors_return);
  gb_mpi.comm_rank(gb_mpi.world, &world_rank);
  gb_mpi.comm_size(gb_mpi.world, &world_size);
  // A communicator's handle is an int or a pointer, so the word must be zero before MPI writes it.
  code = gb_mpi.comm_dup(gb_mpi.world, &gb_mpi.end);
  if (code != 0) return failed("MPI_Comm_dup", code, start.error, start.error_size);
  char version[8192] = "";  // MPI_MAX_LIBRARY_VERSION_STRING is 256 (Open MPI) or 8192 (MPICH).
  int length = 0;
  gb_mpi.get_library_version(version, &length);
  version[strcspn(version, "\n")] = 0;
  snprintf(start.version, start.version_size, "%s", version);
  return 0;
}

static void *mpi_thread(void *unused) {
  (void)unused;
  int result = initialise();
  pthread_mutex_lock(&lock);
  start.result = result;
  start.done = 1;
  running = result == 0;
  pthread_cond_broadcast(&changed);
  while (running) {
    while (pending == NULL) pthread_cond_wait(&changed, &lock);
    struct request *r = pending;
    pthread_mutex_unlock(&lock);
    r->result = serve(r);
    pthread_mutex_lock(&lock);
    pending = NULL;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

int gb_mpi_init(int *rank, int *size, char *version, size_t version_size, char *error, size_t error_size) {
  start.version = version;
  start.version_size = version_size;
  start.error = error;
  start.error_size = error_size;
  pthread_t thread;
  if (pthread_create(&thread, NULL, mpi_thread, NULL) != 0) {
    snprintf(error, error_size, "can't start the thread for MPI");
    return 1;
  }
  pthread_detach(thread);
  pthread_mutex_lock(&lock);
  while (!start.done) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  *rank = world_rank;
  *size = world_size;
  return start.result;
}

int gb_mpi_call(int kind, const void *send, void *data, int64_t count, int type, int root, char *error,
                size_t error_size) {
  struct request r = {.kind = kind, .send = send, .data = data, .count = count, .type = type, .root = root,
                      .error = error, .error_size = error_size};
  pthread_mutex_lock(&lock);
  while (pending != NULL && running) pthread_cond_wait(&changed, &lock);
  if (!running) {
    pthread_mutex_unlock(&lock);
    snprintf(error, error_size, "rank %d of %d: MPI is not running: it was finalized or never started", world_rank, world_size);
    return 1;
  }
  if (serialized && kind != GB_MPI_FINALIZE) {
    r.result = serve(&r);  // The lock makes it the only call.
    pthread_mutex_unlock(&lock);
    return r.result;
  }
  pending = &r;
  pthread_cond_broadcast(&changed);
  while (pending == &r) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  return r.result;
}

int gb_mpi_transport(int kind, const void *in, void *out, int64_t count, int dtype, char *error, size_t error_size) {
  if (kind == GB_MPI_ALL_GATHER && (dtype == GB_FLOAT16 || dtype == GB_BFLOAT16)) {  // MPI doesn't know them.
    dtype = GB_BYTE;
    count *= 2;
  }
  return gb_mpi_call(kind, in, out, count, dtype, 0, error, error_size);
}

void gb_mpi_abort(int code) { gb_mpi.abort(gb_mpi.world, code); }
