#include "trim.h"

#include <stdlib.h>

#include "heap.h"

#ifdef __GLIBC__
#include <malloc.h>

void gb_trim(void) {
  malloc_trim(0);
  gb_heap_shrunk();
}
#else
void gb_trim(void) {}
#endif
