#include "trim.h"

#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>

void gb_trim(void) { malloc_trim(0); }
#else
void gb_trim(void) {}
#endif
