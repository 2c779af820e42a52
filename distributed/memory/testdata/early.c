// A library that uses memory before the program that it belongs to has begun.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void use_memory(void) {
  char *volatile first = malloc(100);
  char *volatile second = calloc(2, 50);
  if (first == NULL || second == NULL) abort();
  strcpy(first, "early");
  free(second);
  first = realloc(first, 8 << 20);
  if (first == NULL || strcmp(first, "early") != 0 || malloc_usable_size(first) < 8 << 20) abort();
  free(first);
}
