// A malloc that a user preloads: it adds a header to each block of the C library's, and ends the
// process that hands it a block of another malloc.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

typedef struct {
  void *whole;
  size_t size;
  uint64_t mark[2];
} header;

static const uint64_t mark = 0x7072656c6f616421;

static header *header_of(void *block) {
  header *h = (header *)block - 1;
  if (h->mark[0] != mark || h->mark[1] != (uintptr_t)block) abort();
  return h;
}

void *memalign(size_t alignment, size_t size) {
  if (alignment < sizeof(header)) alignment = sizeof(header);
  if (size > PTRDIFF_MAX - alignment) return NULL;
  char *whole = __libc_memalign(alignment, size + alignment);
  if (whole == NULL) return NULL;
  char *block = whole + alignment;
  *((header *)block - 1) = (header){whole, size, {mark, (uintptr_t)block}};
  return block;
}

void *malloc(size_t size) { return memalign(16, size); }

void *calloc(size_t count, size_t size) {
  void *block = memalign(16, count * size);
  return block == NULL ? NULL : memset(block, 0, count * size);
}

size_t malloc_usable_size(void *block) { return block == NULL ? 0 : header_of(block)->size; }

void free(void *block) {
  if (block == NULL) return;
  void *whole = header_of(block)->whole;
  memset((header *)block - 1, 0, sizeof(header));
  __libc_free(whole);
}

void *realloc(void *block, size_t size) {
  size_t had = malloc_usable_size(block);
  void *moved = memalign(16, size);
  if (moved == NULL) return NULL;
  if (block != NULL) memcpy(moved, block, had < size ? had : size);
  free(block);
  return moved;
}
