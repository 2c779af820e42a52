#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "extents.h"

// What nothing has needed while this many times the pool's memory was taken goes back to the
// kernel. So of that many pages that are taken, at most one has to be cleared again.
static const size_t patience = 16;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gb_extents extents;

// The pages in use, and the idle ones. Since memory last went back: how many were taken, and were
// in use at most.
static size_t used, idle, taken, peak;

// The pages in use at most since gb_pool_peak was called.
static size_t most;

static void acquire(void) { pthread_mutex_lock(&lock); }

static void release(void) { pthread_mutex_unlock(&lock); }

// Were another thread inside while a process forks, the child's pool would stay locked.
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(acquire, release, release); }

// map returns new pages, or NULL.
static char *map(size_t pages) {
  size_t size = pages * GB_POOL_PAGE;
  char *all = mmap(NULL, size + GB_POOL_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return NULL;
  size_t before = -(uintptr_t)all % GB_POOL_PAGE;
  if (before > 0) munmap(all, before);
  munmap(all + before + size, GB_POOL_PAGE - before);
#ifdef MADV_HUGEPAGE
  (void)madvise(all + before, size, MADV_HUGEPAGE);  // If the kernel refuses, nothing is lost.
#endif
  return all + before;
}

static void add_idle(char *begin, size_t pages) {
  if (pages == 0) return;
  gb_extents_add(&extents, begin, pages);
  idle += pages;
}

static void cut_idle(size_t i, size_t pages) {
  gb_extents_cut(&extents, i, pages);
  idle -= pages;
}

// keep_idle gives idle pages back to the kernel until no more than so many are left.
static void keep_idle(size_t most) {
  for (size_t i = extents.count; i-- > 0 && idle > most;) {
    gb_extent *e = &extents.all[i];
    if (e->used) continue;
    size_t pages = e->pages < idle - most ? e->pages : idle - most, size = pages * GB_POOL_PAGE;
    if (munmap(gb_extents_end(e) - size, size) == 0) cut_idle(i, pages);
  }
}

// move_page moves a page with what it holds, which is cheaper than a new one that the kernel has to
// clear.
static int move_page(char *from, char *to) {
  return mremap(from, GB_POOL_PAGE, GB_POOL_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

// move_idle moves idle pages to an address, as many as there are, and reports whether the kernel
// did: it limits how many pieces a process' memory may have. Moved says how many were.
static int move_idle(char *to, size_t pages, size_t *moved) {
  *moved = 0;
  for (size_t i = extents.count; i-- > 0;)
    for (size_t left = extents.all[i].used ? 0 : extents.all[i].pages; left > 0; left--) {
      if (*moved == pages) return 1;
      if (!move_page(gb_extents_end(&extents.all[i]) - GB_POOL_PAGE, to + *moved * GB_POOL_PAGE)) return 0;
      cut_idle(i, 1);
      ++*moved;
    }
  return 1;
}

// gather makes so many idle pages follow one another: those that there are, and new ones.
static int gather(size_t pages) {
  size_t moved;
  char *to = map(pages);
  if (to == NULL) return 0;
  int done = move_idle(to, pages, &moved);
  if (!done) munmap(to + moved * GB_POOL_PAGE, (pages - moved) * GB_POOL_PAGE);
  add_idle(to, done ? pages : moved);
  return done;
}

// replace gives all idle pages back to the kernel, and takes so many new ones.
static void replace(size_t pages) {
  keep_idle(0);
  char *begin = map(pages);
  if (begin != NULL) add_idle(begin, pages);
}

// fit returns the index of an idle extent of at least so many pages; if there can be none, the
// number of extents.
static size_t fit(size_t pages) {
  size_t i = gb_extents_fit(&extents, pages);
  if (i < extents.count) return i;
  if (!gather(pages)) replace(pages);
  return gb_extents_fit(&extents, pages);
}

// forget gives back what nothing has needed for long.
static void forget(void) {
  if (taken < patience * (used + idle)) return;
  keep_idle(peak - used);
  taken = 0;
  peak = used;
}

static char *use(size_t i, size_t pages) {
  char *block = gb_extents_use(&extents, i, pages);
  idle -= pages;
  used += pages;
  taken += pages;
  if (used > peak) peak = used;
  if (used > most) most = used;
  forget();
  return block;
}

void *gb_pool_take(size_t size) {
  if (size > PTRDIFF_MAX - GB_POOL_PAGE) return NULL;
  size_t pages = (size + GB_POOL_PAGE - 1) / GB_POOL_PAGE;
  void *block = NULL;
  acquire();
  if (gb_extents_reserve(&extents, 2)) {
    size_t i = fit(pages);
    if (i < extents.count) block = use(i, pages);
  }
  release();
  return block;
}

// find returns the index of a block in use; if there is none, the number of extents.
static size_t find(const char *block) {
  size_t i = gb_extents_at(&extents, block);
  return i < extents.count && extents.all[i].begin == block && extents.all[i].used ? i : extents.count;
}

// is_candidate reports whether an address may be that of a block.
static int is_candidate(const void *address) { return address != NULL && (uintptr_t)address % GB_POOL_PAGE == 0; }

size_t gb_pool_size(const void *block) {
  if (!is_candidate(block)) return 0;
  acquire();
  size_t i = find(block), size = i < extents.count ? extents.all[i].pages * GB_POOL_PAGE : 0;
  release();
  return size;
}

int gb_pool_give(void *block) {
  if (!is_candidate(block)) return 0;
  acquire();
  size_t i = find(block);
  int found = i < extents.count;
  if (found) {
    used -= extents.all[i].pages;
    idle += extents.all[i].pages;
    gb_extents_free(&extents, i);
  }
  release();
  return found;
}

int gb_pool_empty(void) {
  acquire();
  size_t before = idle;
  keep_idle(0);
  int less = idle < before;
  release();
  return less;
}

size_t gb_pool_peak(void) {
  acquire();
  size_t pages = most;
  most = used;
  release();
  return pages * GB_POOL_PAGE;
}
