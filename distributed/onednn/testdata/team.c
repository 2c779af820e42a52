// Many calls of the team, of random numbers of threads and rows: each row must be computed once.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "library.h"

enum { CALLS = 20000, MOST_ROWS = 40 };

struct gb_dnn_library gb_dnn;

static int threads, computed[MOST_ROWS];

int gb_dnn_threads(void) { return threads; }

static void set_threads(int n) { (void)n; }

typedef struct {
  int64_t rows;
  int parts, failing;
} kernel;

static int compute(const void *of, int part) {
  const kernel *k = of;
  int64_t end = gb_dnn_part(k->rows, k->parts, part + 1);
  for (int64_t i = gb_dnn_part(k->rows, k->parts, part); i < end; i++) computed[i]++;
  return part == k->failing;
}

int main(void) {
  gb_dnn.set_threads = set_threads;
  for (int call = 0; call < CALLS; call++) {
    threads = 1 + rand() % 6;
    kernel k = {1 + rand() % MOST_ROWS, 0, -1};
    k.parts = gb_dnn_parts(k.rows);
    if (rand() % 8 == 0) k.failing = rand() % k.parts;
    for (int i = 0; i < MOST_ROWS; i++) computed[i] = 0;
    if (rand() % 1000 == 0) usleep(300);  // The team falls asleep.
    int failed = gb_dnn_together(compute, &k, k.parts);
    if (failed != (k.failing >= 0)) return printf("call %d: %d, want %d\n", call, failed, k.failing >= 0), 1;
    for (int i = 0; i < MOST_ROWS; i++)
      if (computed[i] != (i < k.rows)) return printf("call %d: row %d of %d: %d times\n", call, i, (int)k.rows, computed[i]), 1;
  }
  return 0;
}
