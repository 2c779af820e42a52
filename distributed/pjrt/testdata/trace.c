// Threads that record operations while recordings begin and end, and what that costs.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../trace.h"

enum { THREADS = 6, RECORDINGS = 200, MOST = 500, CALLS = 100 * 1000 * 1000 };

static atomic_int done;

// work records operations whose numbers are the thread's and how many it has recorded before.
static void *work(void *number) {
  for (int64_t i = 0; !atomic_load(&done); i++) {
    int64_t began = gb_trace_begin();
    gb_trace_end(began, GB_TRACE_PRODUCT, (int64_t[]){(intptr_t)number, i}, 2);
    if (i % 64 == 0) usleep(1);
  }
  return NULL;
}

// wrong says what is wrong with a recording, which began after `from`; NULL if nothing is.
static const char *wrong(const gb_operation *all, int64_t count, int64_t lost, int64_t from) {
  int64_t last[THREADS];
  memset(last, -1, sizeof last);
  if (count > MOST || (lost > 0 && count != MOST)) return "the number of operations";
  for (int64_t i = 0; i < count; i++) {
    const gb_operation *o = &all[i];
    if (o->begin < from || o->end < o->begin || o->end > gb_trace_now()) return "the time";
    if (o->kind != GB_TRACE_PRODUCT || o->thread == 0 || o->numbers[2] != 0) return "the contents";
    int64_t thread = o->numbers[0];
    if (thread < 0 || thread >= THREADS || o->numbers[1] <= last[thread]) return "the order";
    last[thread] = o->numbers[1];
  }
  return NULL;
}

static int threads(void) {
  pthread_t all[THREADS];
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&all[i], NULL, work, (void *)i);
  int64_t recorded = 0, full = 0;
  const char *failure = NULL;
  // On a busy machine, it may take many recordings until one is full.
  for (int i = 0; (i < RECORDINGS || (full == 0 && i < 100 * RECORDINGS)) && failure == NULL; i++) {
    gb_operation *operations;
    int64_t from = gb_trace_now(), lost;
    gb_trace_start(MOST);
    if (i % 7 == 0) gb_trace_start(MOST);  // A recording that was never stopped.
    usleep(rand() % 1000);
    int64_t count = gb_trace_stop(&operations, &lost);
    failure = wrong(operations, count, lost, from);
    recorded += count;
    full += lost > 0;
    free(operations);
  }
  atomic_store(&done, 1);
  for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
  if (failure != NULL) return printf("%s of a recording is wrong\n", failure), 1;
  printf("%lld operations, %lld recordings full\n", (long long)recorded, (long long)full);
  return recorded == 0 || full == 0;
}

static double nanoseconds(int64_t calls) {
  int64_t began = gb_trace_now();
  for (int64_t i = 0; i < calls; i++) {
    int64_t at = gb_trace_begin();
    gb_trace_end(at, GB_TRACE_RANDOM, &i, 1);
  }
  return (double)(gb_trace_now() - began) / calls;
}

static void cost(void) {
  double off = nanoseconds(CALLS);
  gb_trace_start(1 << 20);
  double on = nanoseconds(1 << 20);
  gb_operation *operations;
  int64_t lost;
  gb_trace_stop(&operations, &lost);
  free(operations);
  printf("an operation takes %.2f ns more while no recording is on, and %.0f ns while one is\n", off, on);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "cost") == 0) return cost(), 0;
  return threads();
}
