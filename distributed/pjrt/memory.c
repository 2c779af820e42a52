// The memory of XLA's buffers on a CPU. XLA takes and returns the same large buffers in each step.
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

// keep_freed_memory makes malloc keep what it is given back. From and to the kernel, its pages would be cleared and
// faulted in each time: a quarter of a step of a large model.
//
// There is one arena, because others consist of pieces of 64 MiB: what is larger is asked from the kernel whatever the
// settings are. Threads that exist keep their arenas, so all this is set before main.
__attribute__((constructor)) static void keep_freed_memory(void) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

#ifdef __GLIBC__

static const size_t huge_page = 2 << 20;

// posix_memalign replaces that of the C library, in the whole program. XLA takes its buffers with it. Large ones get
// huge pages: with those of 4 KiB, a step of a large model takes a third longer.
int posix_memalign(void **memory, size_t alignment, size_t size) {
  if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
  int large = size >= 2 * huge_page;
  void *block = memalign(large && alignment < huge_page ? huge_page : alignment, size);
  if (block == NULL) return ENOMEM;
#ifdef MADV_HUGEPAGE
  // If the kernel refuses, nothing is lost.
  if (large) (void)madvise(block, size & ~(huge_page - 1), MADV_HUGEPAGE);
#endif
  *memory = block;
  return 0;
}

#endif
