#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "extents.h"

#include <string.h>
#include <sys/mman.h>

#include "pool.h"

char *gb_extents_end(const gb_extent *e) { return e->begin + e->pages * GB_POOL_PAGE; }

// The extents are in memory of the kernel's, because malloc is what needs them.
int gb_extents_reserve(gb_extents *x, size_t more) {
  if (x->count + more <= x->room) return 1;
  size_t size = x->room * sizeof(gb_extent), larger = size > 0 ? 2 * size : 1 << 16;
  void *all = size > 0 ? mremap(x->all, size, larger, MREMAP_MAYMOVE)
                       : mmap(NULL, larger, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return 0;
  x->all = all;
  x->room = larger / sizeof(gb_extent);
  return 1;
}

size_t gb_extents_at(const gb_extents *x, const char *begin) {
  size_t low = 0, high = x->count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (x->all[middle].begin < begin)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

size_t gb_extents_fit(const gb_extents *x, size_t pages) {
  size_t best = x->count;
  for (size_t i = 0; i < x->count; i++) {
    const gb_extent *e = &x->all[i];
    if (!e->used && e->pages >= pages && (best == x->count || e->pages < x->all[best].pages)) best = i;
  }
  return best;
}

static void insert(gb_extents *x, size_t i, gb_extent e) {
  memmove(&x->all[i + 1], &x->all[i], (x->count - i) * sizeof e);
  x->all[i] = e;
  x->count++;
}

static void erase(gb_extents *x, size_t i) {
  x->count--;
  memmove(&x->all[i], &x->all[i + 1], (x->count - i) * sizeof(gb_extent));
}

// join makes one of two extents if both are idle and nothing is between them.
static void join(gb_extents *x, size_t i) {
  if (i + 1 >= x->count) return;
  gb_extent *e = &x->all[i], *next = e + 1;
  if (e->used || next->used || gb_extents_end(e) != next->begin) return;
  e->pages += next->pages;
  erase(x, i + 1);
}

void gb_extents_free(gb_extents *x, size_t i) {
  x->all[i].used = 0;
  join(x, i);
  if (i > 0) join(x, i - 1);
}

void gb_extents_add(gb_extents *x, char *begin, size_t pages) {
  size_t i = gb_extents_at(x, begin);
  insert(x, i, (gb_extent){begin, pages, 0});
  gb_extents_free(x, i);
}

char *gb_extents_use(gb_extents *x, size_t i, size_t pages) {
  gb_extent *e = &x->all[i];
  gb_extent rest = {e->begin + pages * GB_POOL_PAGE, e->pages - pages, 0};
  e->used = 1;
  e->pages = pages;
  if (rest.pages > 0) insert(x, i + 1, rest);
  return x->all[i].begin;
}

void gb_extents_cut(gb_extents *x, size_t i, size_t pages) {
  x->all[i].pages -= pages;
  if (x->all[i].pages == 0) erase(x, i);
}
