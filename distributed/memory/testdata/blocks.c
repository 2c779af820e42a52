// blocks TEST SEED    takes and gives back blocks at random, as XLA does, and prints what that took.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const size_t KiB = 1 << 10, MiB = 1 << 20;

typedef struct {
  char *begin;
  size_t size;
} block;

static uint64_t state;

// under is a number of at least 0 and below a limit.
static uint64_t under(uint64_t limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % limit;
}

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static block take(size_t size) {
  block b = {NULL, size};
  if (posix_memalign((void **)&b.begin, 64, size) != 0) fail("out of memory");
  for (size_t i = 0; i < size; i += 4096) b.begin[i] = (char)(size >> 12);
  return b;
}

static void give(block *b) {
  for (size_t i = 0; i < b->size; i += 4096)
    if (b->begin[i] != (char)(b->size >> 12)) fail("a block has what another wrote");
  free(b->begin);
  *b = (block){0};
}

static void report(size_t live) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("{\"live\": %zu, \"resident\": %zu, \"faults\": %ld, \"ms\": %ld}\n", live, (size_t)usage.ru_maxrss * KiB, usage.ru_minflt, usage.ru_utime.tv_sec*1000+usage.ru_utime.tv_usec/1000+usage.ru_stime.tv_sec*1000+usage.ru_stime.tv_usec/1000);
}

static void mixed(void) {
  enum { slots = 256 };
  static block all[slots];
  size_t live = 0, peak = 0;
  for (int i = 0; i < 20000; i++) {
    block *b = &all[under(slots)];
    if (b->begin != NULL) {
      live -= b->size;
      give(b);
      continue;
    }
    size_t size = under(2) ? 4 * MiB + under(20 * MiB) : 4 * KiB + under(MiB);
    if (live + size > 192 * MiB) continue;
    *b = take(size);
    live += size;
    if (live > peak) peak = live;
  }
  report(peak);
}
int main(int argc, char **argv) { state = strtoul(argv[2], 0, 10); mixed(); }
