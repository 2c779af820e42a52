// Compares what the ranks call, before MPI runs it: with different operations, types or numbers of
// elements, MPI gives wrong numbers or waits forever.
//
// Comparing each collective would cost a message each time. So a collective is compared when it
// follows others for the first time: a training step repeats itself, and its collectives are
// compared once. Ranks that have called the same until now agree about what to compare. If only
// some ranks compare, they wait on a communicator of their own, and the others for them, until
// package watch ends the job and says why.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"

// intent is what the ranks must agree about. detail is the first number of a form: see Transport in
// package pjrt.
typedef struct {
  int64_t kind, type, count, detail;
} intent;

enum { BEFORE = 3, MOST_KNOWN = 1 << 16 };

static uint64_t before[BEFORE];            // The last collectives, as hashes.
static uint64_t known[2 * MOST_KNOWN];     // A hash table of collectives, each with those before it. 0 is free.
static int known_count;

static uint64_t mixed(uint64_t sum, uint64_t value) {
  sum = (sum ^ value) * 0x9e3779b97f4a7c15u;
  return sum ^ (sum >> 29);
}

static uint64_t hash_of(const intent *i) {
  return mixed(mixed(mixed(mixed(1, (uint64_t)i->kind), (uint64_t)i->type), (uint64_t)i->count), (uint64_t)i->detail);
}

// place_of returns where the table has a key, or where it would be.
static uint64_t *place_of(uint64_t key) {
  size_t i = key % (2 * MOST_KNOWN);
  while (known[i] != 0 && known[i] != key) i = (i + 1) % (2 * MOST_KNOWN);
  return &known[i];
}

// remember adds a collective that all ranks have called. A full table begins again, on all ranks.
static void remember(uint64_t key) {
  if (known_count == MOST_KNOWN) {
    memset(known, 0, sizeof known);
    known_count = 0;
  }
  *place_of(key) = key;
  known_count++;
}

static const char *kind_name(int64_t kind) {
  switch (kind) {
    case GB_MPI_ALL_REDUCE: return "all-reduce";
    case GB_MPI_BROADCAST: return "broadcast";
    case GB_MPI_ALL_GATHER: return "all-gather";
    case GB_MPI_BARRIER: return "barrier";
    case GB_MPI_REDUCE_SCATTER: return "reduce-scatter";
    case GB_MPI_ALL_TO_ALL: return "all-to-all";
  }
  return "unknown collective";
}

static const char *type_name(int64_t type) {
  switch (type) {
    case GB_BYTE: return "bytes";
    case GB_INT32: return "int32";
    case GB_INT64: return "int64";
    case GB_FLOAT32: return "float32";
    case GB_FLOAT64: return "float64";
    case GB_FLOAT16: return "float16";
    case GB_BFLOAT16: return "bfloat16";
  }
  return "elements of an unknown type";
}

// describe writes an intent for people, such as "all-reduce (maximum) of 5 float32 in groups
// #3f2a1b0c".
static void describe(const intent *i, char *text, size_t size) {
  static const char *const reductions[] = {"", " (minimum)", " (maximum)", ""};
  long long root = (i->detail >> 2) & ((1 << 29) - 1), groups = i->detail >> 31;
  int n = snprintf(text, size, "%s", kind_name(i->kind));
  if (i->kind == GB_MPI_BARRIER) return;
  n += snprintf(text + n, size - (size_t)n, "%s of %lld %s", reductions[i->detail & 3], (long long)i->count, type_name(i->type));
  if (root != 0) n += snprintf(text + n, size - (size_t)n, " from %lld", root);
  if (groups != 0) snprintf(text + n, size - (size_t)n, " in groups #%08llx", groups);
}

// compare gives every rank the intents of all, and returns 1 and an error text if they differ.
static int compare(const gb_request *r, const intent *mine) {
  int size = gb_all_ranks.size, other = 0;
  intent *all = calloc((size_t)size, sizeof *all);
  if (all == NULL) abort();
  int code = gb_mpi.allgather(mine, sizeof *mine, gb_mpi.byte, all, sizeof *all, gb_mpi.byte, gb_mpi.agreement);
  while (code == 0 && other < size && memcmp(&all[other], mine, sizeof *mine) == 0) other++;
  int result = 0;
  if (code != 0) {
    result = gb_failed("MPI_Allgather", code, r->error, r->error_size);
  } else if (other < size) {
    char theirs[200], own[200];
    describe(&all[other], theirs, sizeof theirs);
    describe(mine, own, sizeof own);
    snprintf(r->error, r->error_size, "rank %d of %d: rank %d calls %s here, and this rank %s: all ranks must call the same collective, in the same order",
             gb_all_ranks.place, size, other, theirs, own);
    result = 1;
  }
  free(all);
  return result;
}

int gb_agree(const gb_request *r) {
  if (gb_all_ranks.size < 2) return 0;
  intent mine = {r->kind, r->type, r->count, r->form != NULL ? r->form[0] : 0};
  uint64_t own = hash_of(&mine), key = own;
  for (int i = 0; i < BEFORE; i++) key = mixed(key, before[i]);
  if (key == 0) key = 1;
  if (*place_of(key) == 0) {
    if (compare(r, &mine) != 0) return 1;
    remember(key);
  }
  memmove(before, before + 1, sizeof before - sizeof *before);
  before[BEFORE - 1] = own;
  return 0;
}
