// The collectives that reduce. Where all ranks are on one machine, they copy one another's values
// in its memory, and a large reduction is limited by that: it then proceeds in shares that stay in
// the caches. MPI's own algorithms use temporary memory as large as the whole value (see
// docs/adr/0030).
#include <stdio.h>
#include <stdlib.h>

#include "collect.h"
#include "yield.h"

int64_t gb_mpi_share = 0;

// FEW is the number of shares that an all-reduce takes at a time, unless there are more ranks. A
// value of less than MANY shares fits into the caches as it is. Parts of less than a SMALL-th of a
// share are MPI's to scatter: it sends fewer messages.
enum { FEW = 4, MANY = 128, SMALL = 16 };

int gb_all_reduce(const gb_call *c) {
  gb_request *r = c->r;
  int64_t most = gb_mpi_chunk, shares = gb_mpi_share * (c->team.size > FEW ? c->team.size : FEW);
  int is_large = gb_mpi_share > 0 && r->count * (int64_t)c->size >= MANY * gb_mpi_share;
  if (is_large && shares < most) most = shares;
  for (int64_t done = 0, n; done < r->count; done += n) {
    n = gb_chunk(c, most, done);
    gb_wait_begins();
    int code = gb_mpi.allreduce(gb_mpi.in_place, (char *)r->data + (size_t)done * c->size, (int)n, c->type, c->operation, c->team.comm);
    if (code != 0) return gb_failed("MPI_Allreduce", code, r->error, r->error_size);
  }
  return 0;
}

int gb_exchanges(const gb_call *c) {
  return c->r->kind == GB_MPI_REDUCE_SCATTER && gb_mpi_share > 0 && c->team.size > 1 && c->r->count * (int64_t)c->size >= gb_mpi_share / SMALL;
}

// give_and_take sends elements of the part of the rank that is that many places ahead to it,
// receives those of this rank's part from the one as many places behind, and adds them up.
static int give_and_take(const gb_call *c, int ahead, int64_t done, int64_t n, char *got) {
  gb_request *r = c->r;
  int members = c->team.size, to = (c->team.place + ahead) % members, from = (c->team.place + members - ahead) % members;
  const char *in = r->send;
  char *out = (char *)r->data + (size_t)done * c->size;
  char *to_memory = ahead == 1 ? out : got;
  gb_wait_begins();
  int code = gb_mpi.sendrecv(in + (size_t)(to * r->count + done) * c->size, (int)n, c->type, to, 0, to_memory, (int)n, c->type, from, 0, c->team.comm, gb_mpi.no_status);
  if (code != 0) return gb_failed("MPI_Sendrecv", code, r->error, r->error_size);
  const char *own = in + (size_t)(c->team.place * r->count + done) * c->size;
  code = gb_mpi.reduce_local(ahead == 1 ? own : got, out, (int)n, c->type, c->operation);
  return code == 0 ? 0 : gb_failed("MPI_Reduce_local", code, r->error, r->error_size);
}

// gb_reduce_scatter exchanges the parts in pairs: in round k, with the ranks k places ahead and
// behind. A rank sends and receives each element of the others' parts and its own once (Thakur,
// Rabenseifner and Gropp, Optimization of collective communication operations in MPICH,
// 2005).
int gb_reduce_scatter(const gb_call *c) {
  gb_request *r = c->r;
  char *got = c->team.size > 2 ? malloc((size_t)gb_mpi_share + c->size) : NULL;
  if (c->team.size > 2 && got == NULL) {
    snprintf(r->error, r->error_size, "rank %d of %d: out of memory", gb_all_ranks.place, gb_all_ranks.size);
    return 1;
  }
  int result = 0;
  for (int64_t done = 0, n; done < r->count && result == 0; done += n) {
    n = gb_chunk(c, gb_mpi_share, done);
    for (int ahead = 1; ahead < c->team.size && result == 0; ahead++) result = give_and_take(c, ahead, done, n, got);
  }
  free(got);
  return result;
}
