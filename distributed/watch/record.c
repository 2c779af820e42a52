// Counts collectives: those of Go, and those inside compiled programs, which Go doesn't see.
#include "record.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "_cgo_export.h"

enum { KEPT = 256 };

struct gb_record {
  pthread_mutex_t lock;
  uint64_t entered, left;
  int64_t changed;  // When either last changed, in nanoseconds of the monotonic clock.
  gb_collective kept[KEPT];
};

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

gb_record *gb_record_new(void) {
  gb_record *r = calloc(1, sizeof *r);
  if (r == NULL) abort();
  pthread_mutex_init(&r->lock, NULL);
  r->changed = now();
  return r;
}

void gb_record_enter(gb_record *r, int kind, int type, int64_t count, int64_t detail) {
  pthread_mutex_lock(&r->lock);
  r->entered++;
  r->kept[r->entered % KEPT] = (gb_collective){.number = r->entered, .kind = kind, .type = type, .count = count, .detail = detail};
  r->changed = now();
  pthread_mutex_unlock(&r->lock);
}

void gb_record_leave(gb_record *r) {
  pthread_mutex_lock(&r->lock);
  r->left++;
  r->changed = now();
  pthread_mutex_unlock(&r->lock);
}

void gb_record_read(gb_record *r, uint64_t *entered, uint64_t *left, int64_t *since) {
  pthread_mutex_lock(&r->lock);
  *entered = r->entered;
  *left = r->left;
  *since = now() - r->changed;
  pthread_mutex_unlock(&r->lock);
}

int gb_record_recent(gb_record *r, uint64_t after, gb_collective *out, int max) {
  if (max > KEPT) max = KEPT;
  pthread_mutex_lock(&r->lock);
  uint64_t first = r->entered >= (uint64_t)max ? r->entered - (uint64_t)max + 1 : 1;
  if (first <= after) first = after + 1;
  int n = 0;
  for (uint64_t i = first; i <= r->entered; i++) out[n++] = r->kept[i % KEPT];
  pthread_mutex_unlock(&r->lock);
  return n;
}

// What the compiled programs of this process use.
static struct {
  gb_record *record;
  gb_watch_transport inner;
} wrapped;

static int transport(int kind, const void *in, void *out, int64_t count, int dtype, const int64_t *form, char *error,
                     size_t error_size) {
  gb_record_enter(wrapped.record, kind, dtype, count, form == NULL ? 0 : form[0]);
  int result = wrapped.inner(kind, in, out, count, dtype, form, error, error_size);
  // The reason for a failure may be the end of another rank. If the watch finds that out, this call
  // does not return.
  if (result != 0) gonbatchWatchFailed(error);
  gb_record_leave(wrapped.record);
  return result;
}

gb_watch_transport gb_record_wrap(gb_record *r, gb_watch_transport inner) {
  wrapped.record = r;
  wrapped.inner = inner;
  return transport;
}
