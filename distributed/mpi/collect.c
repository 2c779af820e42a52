// The collectives. MPI counts with 32 bits, so large ones take several calls.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "yield.h"

enum { FORM_ROOT = 2 };

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

int64_t gb_mpi_chunk = 1 << 30;

int64_t gb_chunk(const gb_call *c, int64_t bytes, int64_t done) {
  int64_t most = bytes / (int64_t)c->size, left = c->r->count - done;
  if (most < 1) most = 1;
  return left < most ? left : most;
}

static int broadcast(const gb_call *c) {
  gb_request *r = c->r;
  int root = r->form == NULL ? 0 : (int)r->form[FORM_ROOT];
  for (int64_t done = 0, n; done < r->count; done += n) {
    n = gb_chunk(c, gb_mpi_chunk, done);
    gb_wait_begins();
    int code = gb_mpi.bcast((char *)r->data + (size_t)done * c->size, (int)n, c->type, root, c->team.comm);
    if (code != 0) return gb_failed("MPI_Bcast", code, r->error, r->error_size);
  }
  return 0;
}

// many calls MPI for a collective of n elements a rank.
static int many(const gb_call *c, const void *in, void *out, int n) {
  gb_request *r = c->r;
  int code;
  gb_wait_begins();
  switch (r->kind) {
    case GB_MPI_ALL_GATHER:
      code = gb_mpi.allgather(in != NULL ? in : gb_mpi.in_place, n, c->type, out, n, c->type, c->team.comm);
      return code == 0 ? 0 : gb_failed("MPI_Allgather", code, r->error, r->error_size);
    case GB_MPI_ALL_TO_ALL:
      code = gb_mpi.alltoall(in, n, c->type, out, n, c->type, c->team.comm);
      return code == 0 ? 0 : gb_failed("MPI_Alltoall", code, r->error, r->error_size);
  }
  code = gb_mpi.reduce_scatter_block(in, out, n, c->type, c->operation, c->team.comm);
  return code == 0 ? 0 : gb_failed("MPI_Reduce_scatter_block", code, r->error, r->error_size);
}

int64_t gb_mpi_part = 1 << 27;

// part is some elements of each rank's.
typedef struct {
  int64_t first, count;
} part;

// scattered puts a part of what this rank gets from each where it belongs. collected puts a part of
// what each rank gets together.
static void scattered(const gb_call *c, part p, char *whole, const char *together) {
  size_t size = (size_t)p.count * c->size;
  for (int i = 0; i < c->team.size; i++)
    memcpy(whole + ((size_t)i * (size_t)c->r->count + (size_t)p.first) * c->size, together + (size_t)i * size, size);
}

static void collected(const gb_call *c, part p, const char *whole, char *together) {
  size_t size = (size_t)p.count * c->size;
  for (int i = 0; i < c->team.size; i++)
    memcpy(together + (size_t)i * size, whole + ((size_t)i * (size_t)c->r->count + (size_t)p.first) * c->size, size);
}

// one_part runs a collective of a part of each rank's elements. in and out have room for what this
// rank has for all and gets from all, unless it has or gets only one part.
static int one_part(const gb_call *c, part p, char *in, char *out) {
  gb_request *r = c->r;
  size_t at = (size_t)p.first * c->size;
  if (in != NULL) collected(c, p, r->send, in);
  const char *own = r->send != NULL ? r->send : (const char *)r->data + (size_t)c->team.place * (size_t)r->count * c->size;
  const void *send = in != NULL ? in : own + at;
  int result = many(c, send, out != NULL ? out : (char *)r->data + at, (int)p.count);
  if (result == 0 && out != NULL) scattered(c, p, r->data, out);
  return result;
}

// in_parts runs an all-gather, a reduce-scatter or an all-to-all. If there are too many elements,
// each call of MPI takes as many of each rank's, which are put together in other memory.
static int in_parts(const gb_call *c) {
  gb_request *r = c->r;
  int64_t most = gb_mpi_part / c->team.size > 0 ? gb_mpi_part / c->team.size : 1;
  if (r->count <= most) return many(c, r->send, r->data, (int)r->count);
  size_t room = (size_t)most * c->size * (size_t)c->team.size;
  int sends_all = r->kind != GB_MPI_ALL_GATHER, gets_all = r->kind != GB_MPI_REDUCE_SCATTER;
  char *in = sends_all ? malloc(room) : NULL, *out = gets_all ? malloc(room) : NULL;
  int result = (sends_all && in == NULL) || (gets_all && out == NULL);
  if (result != 0) snprintf(r->error, r->error_size, "rank %d of %d: out of memory", gb_all_ranks.place, gb_all_ranks.size);
  for (int64_t done = 0; done < r->count && result == 0; done += most)
    result = one_part(c, (part){done, r->count - done < most ? r->count - done : most}, in, out);
  free(in);
  free(out);
  return result;
}

int gb_collect(gb_request *r) {
  if (r->type == GB_FLOAT16 || r->type == GB_BFLOAT16) {  // MPI doesn't know them; they are only moved.
    r->type = GB_BYTE;
    r->count *= 2;
  }
  gb_call c = {.r = r};
  c.type = mpi_type(r->type, &c.size);
  if (c.size == 0) {
    snprintf(r->error, r->error_size, "rank %d of %d: unsupported element type %d", gb_all_ranks.place, gb_all_ranks.size, r->type);
    return 1;
  }
  if (gb_find_team(r, &c.team) != 0 || gb_operation(r, &c.operation) != 0) return 1;
  if (r->type == GB_BYTE && (r->kind == GB_MPI_ALL_REDUCE || r->kind == GB_MPI_REDUCE_SCATTER)) c.type = gb_mpi.uint8;
  switch (r->kind) {
    case GB_MPI_ALL_REDUCE: return gb_all_reduce(&c);
    case GB_MPI_BROADCAST: return broadcast(&c);
  }
  return gb_exchanges(&c) ? gb_reduce_scatter(&c) : in_parts(&c);
}
