// The ranks that a collective is over: all, or a group of them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"

gb_team gb_all_ranks;

// The places of the ranks in a form: see Transport in package pjrt.
enum { FORM_RANKS = 3, FORM_PLACES = 4 };

// division is a way to divide the ranks into groups, and this rank's group. A program has few.
struct division {
  struct division *next;
  gb_team mine;
  int64_t places[];
};

static struct division *divisions;

static struct division *find(const int64_t *places) {
  for (struct division *d = divisions; d != NULL; d = d->next)
    if (memcmp(d->places, places, 2 * (size_t)gb_all_ranks.size * sizeof *places) == 0) return d;
  return NULL;
}

// divide creates a communicator for each group. All ranks name the same: gb_agree has compared the
// first number of the form, which differs for others.
static int divide(const gb_request *r, const int64_t *places, struct division **made) {
  size_t bytes = 2 * (size_t)gb_all_ranks.size * sizeof *places;
  struct division *d = calloc(1, sizeof *d + bytes);
  if (d == NULL) abort();
  int64_t group = places[2 * gb_all_ranks.place], place = places[2 * gb_all_ranks.place + 1];
  int code = gb_mpi.comm_split(gb_all_ranks.comm, (int)group, (int)place, &d->mine.comm);
  if (code != 0) {
    free(d);
    return gb_failed("MPI_Comm_split", code, r->error, r->error_size);
  }
  gb_mpi.comm_set_errhandler(d->mine.comm, gb_mpi.errors_return);
  gb_mpi.comm_rank(d->mine.comm, &d->mine.place);
  gb_mpi.comm_size(d->mine.comm, &d->mine.size);
  memcpy(d->places, places, bytes);
  d->next = divisions;
  divisions = *made = d;
  return 0;
}

int gb_find_team(const gb_request *r, gb_team *team) {
  *team = gb_all_ranks;
  if (r->form == NULL || r->form[FORM_RANKS] == 0) return 0;
  if (r->form[FORM_RANKS] != gb_all_ranks.size) {
    snprintf(r->error, r->error_size, "rank %d of %d: groups of %d ranks", gb_all_ranks.place, gb_all_ranks.size, (int)r->form[FORM_RANKS]);
    return 1;
  }
  struct division *d = find(r->form + FORM_PLACES);
  if (d == NULL && divide(r, r->form + FORM_PLACES, &d) != 0) return 1;
  *team = d->mine;
  return 0;
}
