#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "heap.h"

#include <stdlib.h>

#ifdef __GLIBC__

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool.h"

// How much more than it needs the heap takes at once. What nobody uses is only addresses.
enum { STEP = 32 << 20 };

static const uintptr_t small_page = 4096;

static uintptr_t first;            // Where the heap begins, or a little later.
static _Atomic uintptr_t advised;  // The end of the heap when it was last looked at.

// The C library's own record of where the heap ends. MPI may load UCX, which replaces sbrk: its
// sbrk(0) sets the end that it has just read, and so takes away what another thread has added
// meanwhile.
// https://github.com/openucx/ucx/blob/master/src/ucm/util/replace.c
extern void *__curbrk;

static uintptr_t end_of_heap(void) { return (uintptr_t)__atomic_load_n(&__curbrk, __ATOMIC_RELAXED); }

void gb_heap_begin(void) {
  mallopt(M_TOP_PAD, STEP);
  first = (uintptr_t)sbrk(0) / small_page * small_page; // There is one thread, and perhaps no heap yet.
  atomic_store(&advised, first);
}

// advise advises the kernel about the memory from begin to end. If it refuses, nothing is lost.
static void advise(uintptr_t begin, uintptr_t end, int advice) {
  if (begin < end) (void)madvise((void *)begin, end - begin, advice);
}

#ifdef MADV_HUGEPAGE
static const int huge = MADV_HUGEPAGE, plain = MADV_NOHUGEPAGE;
#else
static const int huge = MADV_NORMAL, plain = MADV_NORMAL;
#endif

void gb_heap_advise(void) {
  uintptr_t end = end_of_heap(), begin = atomic_exchange(&advised, end);
  if (end <= begin) return;
  int before = errno;
  advise(begin / small_page * small_page, end, huge);
  errno = before;
}

// sparse reports whether a huge page would take far more memory than the pages from begin to end
// that are in use.
static int sparse(uintptr_t begin, uintptr_t end) {
  unsigned char resident[GB_POOL_PAGE / 4096];
  size_t used = 0, count = (end - begin + small_page - 1) / small_page;
  if (mincore((void *)begin, end - begin, resident) != 0) return 0;
  for (size_t i = 0; i < count; i++) used += resident[i] & 1;
  return used > 0 && used < count / 2;
}

void gb_heap_shrunk(void) {
  uintptr_t end = end_of_heap();
  if (atomic_load(&advised) == first) return; // No huge pages yet.
  int advice = huge;
  uintptr_t begin = first;
  for (uintptr_t at = first, next; at < end; at = next) {
    next = (at / GB_POOL_PAGE + 1) * GB_POOL_PAGE;
    if (next > end) next = end;
    int wish = sparse(at, next) ? plain : huge;
    if (wish != advice) advise(begin, at, advice), begin = at;
    advice = wish;
  }
  advise(begin, end, advice);
  atomic_store(&advised, end);
}

#else

void gb_heap_begin(void) {}
void gb_heap_shrunk(void) {}
void gb_heap_advise(void) {}

#endif
