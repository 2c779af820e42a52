// Extents of a pool: pieces of memory of whole pages, each of which is a block in use or idle. They
// are in the order of their addresses.
#ifndef GONBATCH_MEMORY_EXTENTS_H
#define GONBATCH_MEMORY_EXTENTS_H

#include <stddef.h>

typedef struct {
  char *begin;
  size_t pages : 63;
  size_t used : 1;
} gb_extent;

typedef struct {
  gb_extent *all;
  size_t count, room;
} gb_extents;

// gb_extents_reserve makes room for so many more, and reports whether it could.
int gb_extents_reserve(gb_extents *x, size_t more);

// gb_extents_at returns the index of the first extent that begins at an address or after it.
size_t gb_extents_at(const gb_extents *x, const char *begin);

// gb_extents_fit returns the index of the smallest idle extent of at least so many pages; if there
// is none, the count.
size_t gb_extents_fit(const gb_extents *x, size_t pages);

// gb_extents_add adds idle memory. It becomes one extent with idle memory next to it. There must be
// room.
void gb_extents_add(gb_extents *x, char *begin, size_t pages);

// gb_extents_use makes a block in use of the first pages of an idle extent. There must be room.
char *gb_extents_use(gb_extents *x, size_t i, size_t pages);

// gb_extents_free makes a block idle.
void gb_extents_free(gb_extents *x, size_t i);

// gb_extents_cut removes the last pages of an extent, and the extent if it has no others.
void gb_extents_cut(gb_extents *x, size_t i, size_t pages);

// gb_extents_end is the address behind the last page of an extent.
char *gb_extents_end(const gb_extent *e);

#endif
