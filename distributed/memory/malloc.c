// malloc and the functions that belong to it, for the whole program. Large blocks are those of the
// pool. Small ones are still the C library's, in huge pages (heap.c), or those of a malloc that the
// user has preloaded.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>

#ifdef __GLIBC__

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <string.h>

#include "heap.h"
#include "pool.h"

// Blocks of at least this size are large.
static const size_t large = 2 * GB_POOL_PAGE;

// Before the next functions are found, these do their work: finding them may itself need memory.
static void *early_malloc(size_t size);
static void *early_calloc(size_t count, size_t size);
static void early_free(void *block);
static void *early_realloc(void *block, size_t size);
static size_t early_usable_size(void *block);

// The functions that those below replace: the C library's, or those of a library that the user has
// preloaded.
static struct {
  void *(*malloc)(size_t size);
  void *(*calloc)(size_t count, size_t size);
  void (*free)(void *block);
  void *(*realloc)(void *block, size_t size);
  size_t (*usable_size)(void *block);
} next = {early_malloc, early_calloc, early_free, early_realloc, early_usable_size};

static void find_next(void) {
  next.realloc = dlsym(RTLD_NEXT, "realloc");
  next.usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
  next.free = dlsym(RTLD_NEXT, "free");
  next.calloc = dlsym(RTLD_NEXT, "calloc");
  next.malloc = dlsym(RTLD_NEXT, "malloc");
}

static void *early_malloc(size_t size) { return memalign(_Alignof(max_align_t), size); }

static void *early_calloc(size_t count, size_t size) {
  void *block = early_malloc(count * size);
  return block != NULL ? memset(block, 0, count * size) : NULL;
}

// The few blocks that libraries give back before main are lost.
static void early_free(void *block) { (void)block; }

static void *early_realloc(void *block, size_t size) {
  find_next();
  return next.realloc(block, size);
}

static size_t early_usable_size(void *block) {
  find_next();
  return next.usable_size(block);
}

// Whether there is a pool: only if its blocks come back to it. They would not from a program of
// another language that has opened this one as a library.
static int pooling;

// is_ours reports whether by this name, the libraries of the process call a function of this file.
static int is_ours(const char *name, void *function) { return dlsym(RTLD_DEFAULT, name) == function; }

// begin is called before main, when there is one thread.
__attribute__((constructor)) static void begin(void) {
  find_next();
  // With arenas of their own, threads could not use what others have freed.
  mallopt(M_ARENA_MAX, 1);
  // Large blocks that are not of the pool come from the kernel one by one, and go back to it.
  mallopt(M_MMAP_THRESHOLD, (int)large);
  mallopt(M_TRIM_THRESHOLD, -1);
  gb_heap_begin();
  pooling = is_ours("free", (void *)free) && is_ours("realloc", (void *)realloc) &&
            is_ours("malloc_usable_size", (void *)malloc_usable_size);
}

// take returns a block of the pool: NULL if it is too small, or aligned to more than pages, or
// there is no memory.
static void *take(size_t alignment, size_t size) {
  return pooling && size >= large && alignment <= GB_POOL_PAGE ? gb_pool_take(size) : NULL;
}

// Blocks of at least this size may need more heap. It may also grow for smaller ones, which are too
// many to look each time.
static const size_t medium = 64 << 10;

// advised returns a new block of the next function's, in huge pages if it is in the heap.
static void *advised(void *block, size_t size) {
  if (pooling && size >= medium) gb_heap_advise();
  return block;
}

// Where there is no memory, the idle memory of the pool goes back to the kernel, and the next
// function is asked again.

void *malloc(size_t size) {
  void *block = take(1, size);
  if (block == NULL) block = advised(next.malloc(size), size);
  return block == NULL && gb_pool_empty() ? next.malloc(size) : block;
}

// The memory of a large calloc is not of the pool: the kernel clears its pages when they are used.
void *calloc(size_t count, size_t size) {
  void *block = next.calloc(count, size);
  return block == NULL && gb_pool_empty() ? next.calloc(count, size) : block;
}

void free(void *block) {
  if (!gb_pool_give(block)) next.free(block);
}

void *aligned_alloc(size_t alignment, size_t size) {
  void *block = take(alignment, size);
  if (block == NULL) block = advised(memalign(alignment, size), size);
  return block == NULL && gb_pool_empty() ? memalign(alignment, size) : block;
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
  if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
  int before = errno;
  void *block = aligned_alloc(alignment, size);
  errno = before;
  if (block == NULL) return ENOMEM;
  *memory = block;
  return 0;
}

// leave_pool moves a block to memory of the C library's, which the kernel can resize in place.
static void *leave_pool(void *block, size_t had, size_t size) {
  void *moved = next.malloc(size);
  if (moved == NULL && gb_pool_empty()) moved = next.malloc(size);
  if (moved == NULL) return NULL;
  memcpy(moved, block, had < size ? had : size);
  free(block);
  return moved;
}

static void *resize(void *block, size_t size) {
  void *resized = next.realloc(block, size);
  return resized == NULL && size > 0 && gb_pool_empty() ? next.realloc(block, size) : resized;
}

void *realloc(void *block, size_t size) {
  size_t had = gb_pool_size(block);
  if (had == 0) return resize(block, size);
  if (size <= had && size > had / 2) return block;
  if (size > 0) return leave_pool(block, had, size);
  free(block);
  return NULL;
}

size_t malloc_usable_size(void *block) {
  size_t size = gb_pool_size(block);
  return size > 0 ? size : next.usable_size(block);
}

#endif
