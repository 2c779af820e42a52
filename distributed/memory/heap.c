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

// How much more than it needs the heap takes at once. What nobody uses is only addresses.
enum { STEP = 32 << 20 };

static const uintptr_t small_page = 4096;

static uintptr_t first;            // Where the heap begins, or a little later.
static _Atomic uintptr_t advised;  // The end of the heap when it was last looked at.

static uintptr_t end_of_heap(void) { return (uintptr_t)sbrk(0); }

void gb_heap_begin(void) {
  mallopt(M_TOP_PAD, STEP);
  first = end_of_heap() / small_page * small_page;
  atomic_store(&advised, first);
}

void gb_heap_shrunk(void) { atomic_store(&advised, first); }

void gb_heap_advise(void) {
  uintptr_t end = end_of_heap(), begin = atomic_exchange(&advised, end);
  if (end <= begin) return;
#ifdef MADV_HUGEPAGE
  int before = errno;
  begin = begin / small_page * small_page;
  (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);  // If the kernel refuses, nothing is lost.
  errno = before;
#endif
}

#else

void gb_heap_begin(void) {}
void gb_heap_shrunk(void) {}
void gb_heap_advise(void) {}

#endif
