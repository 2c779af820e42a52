// A pool of large blocks of memory, which come from the kernel in huge pages and stay in the
// process when they are given back. Any thread may call these functions.
#ifndef GONBATCH_MEMORY_POOL_H
#define GONBATCH_MEMORY_POOL_H

#include <stddef.h>

// GB_POOL_PAGE is the size of a huge page. Each block begins at a multiple of it.
#define GB_POOL_PAGE ((size_t)2 << 20)

// gb_pool_take returns a block of at least that many bytes, or NULL if there is no memory. What the
// block holds is arbitrary.
void *gb_pool_take(size_t size);

// gb_pool_size returns how many bytes a block has, or 0 if it is not of the pool.
size_t gb_pool_size(const void *block);

// gb_pool_give gives a block back, and reports whether it was one of the pool.
int gb_pool_give(void *block);

// gb_pool_empty gives all idle memory back to the kernel, and reports whether there was any.
int gb_pool_empty(void);

// gb_pool_peak returns how many bytes were in use at most since the last call.
size_t gb_pool_peak(void);

#endif
