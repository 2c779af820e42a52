// blocks TEST SEED takes blocks of memory and gives them back at random, as XLA does, and prints
// what that took.
//
// The program has the pool in it, so that its malloc is the one of package memory.
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../trim.h"

static const size_t KiB = 1 << 10, MiB = 1 << 20;

static void check(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s\n", what);
  _exit(1);
}

// Numbers at random, for each thread.
static __thread uint64_t state;

// under is at least 0 and below a limit.
static size_t under(size_t limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % limit;
}

// How many in a hundred calls of the kernel fail, in this thread.
static __thread unsigned faulty;

static int fails(void) { return faulty > 0 && under(100) < faulty; }

void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  if (fails()) return errno = ENOMEM, MAP_FAILED;
  return (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset);
}

int munmap(void *at, size_t size) { return fails() ? (errno = ENOMEM, -1) : (int)syscall(SYS_munmap, at, size); }

// mremap may fail after it has removed what was at the new address, as the kernel's may.
void *mremap(void *from, size_t size, size_t larger, int flags, ...) {
  void *to = NULL;
  if (flags & MREMAP_FIXED) {
    __builtin_va_list args;
    __builtin_va_start(args, flags);
    to = __builtin_va_arg(args, void *);
    __builtin_va_end(args);
  }
  if (fails()) {
    if (to != NULL && under(2)) syscall(SYS_munmap, to, larger);
    return errno = ENOMEM, MAP_FAILED;
  }
  return (void *)syscall(SYS_mremap, from, size, larger, flags, to);
}

// sbrk sets the end of the heap that it has read, as UCX's does. The C library's own malloc doesn't
// call it.
void *sbrk(intptr_t more) {
  extern char *__curbrk;
  char *end = __curbrk;
  if (end == NULL) end = (char *)syscall(SYS_brk, NULL);
  sched_yield();
  char *set = (char *)syscall(SYS_brk, end + more);
  return set == end + more ? __curbrk = set, end : (errno = ENOMEM, (void *)-1);
}

// A block that a test has taken. Each of its pages of 4 KiB begins with the block's mark.
typedef struct {
  char *begin;
  size_t size;
  char mark;
} block;

static void mark(block *b) {
  b->mark = (char)under(256);
  for (size_t i = 0; i < b->size; i += 4096) b->begin[i] = b->mark;
}

// check_marks looks at the first bytes of a block.
static void check_marks(const block *b, size_t size) {
  for (size_t i = 0; i < size; i += 4096) check(b->begin[i] == b->mark, "a block has what another wrote");
}

// take takes a block by one of the functions, and reports whether there was memory.
static int take(block *b, size_t size) {
  size_t alignment = (size_t)8 << under(8);
  *b = (block){.size = size};
  switch (under(4)) {
    case 0:
      b->begin = malloc(size);
      break;
    case 1:
      b->begin = calloc(1, size);
      break;
    case 2:
      b->begin = aligned_alloc(alignment, size);
      check((uintptr_t)b->begin % alignment == 0, "a block is not aligned");
      break;
    default:
      if (posix_memalign((void **)&b->begin, alignment, size) != 0) b->begin = NULL;
      check((uintptr_t)b->begin % alignment == 0, "a block is not aligned");
  }
  if (b->begin == NULL) return 0;
  check(malloc_usable_size(b->begin) >= size, "a block is too small");
  mark(b);
  return 1;
}

// take_aligned takes a block as XLA does.
static void take_aligned(block *b, size_t size) {
  *b = (block){.size = size};
  check(posix_memalign((void **)&b->begin, 64, size) == 0, "no memory");
  mark(b);
}

static void give(block *b) {
  check_marks(b, b->size);
  errno = EXDEV;
  free(b->begin);
  check(errno == EXDEV, "free changed errno");
  *b = (block){0};
}

static void resize(block *b, size_t size) {
  char *begin = realloc(b->begin, size);
  if (begin == NULL) return;
  b->begin = begin;
  check_marks(b, size < b->size ? size : b->size);
  b->size = size;
  mark(b);
}

// some_size is mostly small, and large by more than a page.
static size_t some_size(void) { return under(4) > 0 ? 1 + under((size_t)1 << under(22)) : 2 * MiB + under(24 * MiB); }

// churn takes, resizes and gives back blocks, no more than so many bytes at a time.
static void churn(block *all, size_t count, size_t most, int rounds) {
  size_t live = 0;
  for (size_t i = 0; i < count; i++) live += all[i].size;
  for (; rounds > 0; rounds--) {
    block *b = &all[under(count)];
    size_t size = some_size();
    live -= b->size;
    if (b->begin == NULL && live + size <= most)
      take(b, size);
    else if (b->begin != NULL && under(8) == 0 && live + size <= most)
      resize(b, size);
    else if (b->begin != NULL)
      give(b);
    live += b->size;
  }
}

static void give_all(block *all, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (all[i].begin != NULL) give(&all[i]);
}

// resident is how much memory the process has.
static size_t resident(void) {
  size_t size, pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  check(f != NULL && fscanf(f, "%zu %zu", &size, &pages) == 2, "/proc/self/statm");
  fclose(f);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

static void calls(void) {
  static block all[64];
  churn(all, 64, 96 * MiB, 1500);
  give_all(all, 64);
}

// kernel: whatever the kernel refuses, a block is whole, and what there is can be used afterwards.
static void kernel(void) {
  static block all[64];
  for (unsigned i = 0; i < 10; i++) {
    faulty = i % 2 * 10 * i;
    churn(all, 64, 192 * MiB, 250);
  }
  faulty = 0;
  give_all(all, 64);
  check(take(&all[0], 192 * MiB), "no memory");
}

// mixed: large blocks and many small ones, of XLA's kind.
static void mixed(void) {
  enum { large = 16, small = 4096 };
  static block all[large + small];
  size_t live = 0, peak = 0, most = 192 * MiB;
  for (int i = 0; i < 30000; i++) {
    int is_large = under(10) == 0;
    block *b = &all[is_large ? under(large) : large + under(small)];
    size_t size = is_large ? 4 * MiB + under(32 * MiB) : 64 + under((size_t)1 << under(18));
    if (b->begin != NULL) {
      live -= b->size;
      give(b);
    } else if (live + size <= most) {
      take_aligned(b, size);
      live += size;
      if (live > peak) peak = live;
    }
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("{\"live\": %zu, \"resident\": %zu}\n", peak, (size_t)usage.ru_maxrss * KiB);
}

// steps: the same blocks in each step, in the same order, have their memory.
static void steps(void) {
  enum { count = 24, warm = 10, after = 30 };
  static block all[count], kept[warm + after];
  size_t sizes[count];
  long before = 0;
  for (int i = 0; i < count; i++) sizes[i] = 4 * MiB + under(24 * MiB);
  for (int step = 0; step < warm + after; step++) {
    if (step == warm) before = faults();
    for (int i = 0; i < count; i++) {
      take_aligned(&all[i], sizes[i]);
      if (i >= count / 2) give(&all[i - count / 2]);
    }
    for (int i = count / 2; i < count; i++) give(&all[i]);
    take_aligned(&kept[step], 64 * KiB);
  }
  printf("{\"faults\": %ld, \"steps\": %d}\n", faults() - before, after);
}

// small: what small blocks no longer need goes back when it is asked for, not before.
static void small(void) {
  enum { count = 4096, size = 64 << 10 };
  static char *many[count];
  for (int i = 0; i < count; i++) memset(many[i] = malloc(size), 1, size);
  size_t peak = resident();
  for (int i = 0; i < count; i++)
    if (i % 64 != 0) free(many[i]);
  check(resident() > peak / 2, "small blocks leave the process one by one");
  gb_trim();
  printf("{\"live\": %zu, \"resident\": %zu}\n", peak, resident());
}

// less: what is needed no longer goes back while other memory is taken.
static void less(void) {
  static block many[32], one;
  for (int i = 0; i < 32; i++) take_aligned(&many[i], 16 * MiB);
  size_t peak = resident();
  give_all(many, 32);
  for (int i = 0; i < 3000; i++) {
    take_aligned(&one, 5 * MiB);
    give(&one);
  }
  printf("{\"live\": %zu, \"resident\": %zu}\n", peak, resident());
}

static volatile int stop;

static void *churning(void *seed) {
  static __thread block all[32];
  state = (uint64_t)(uintptr_t)seed;
  do churn(all, 32, 32 * MiB, 50);
  while (!stop);
  give_all(all, 32);
  return NULL;
}

// taking is nearly always inside the pool.
static void *taking(void *size) {
  while (!stop) free(malloc((size_t)size));
  return NULL;
}

// fork_child begins a process that takes memory, and waits for it.
static void fork_child(void) {
  int status = -1;
  block b;
  pid_t child = fork();
  if (child == 0) {
    alarm(300);
    take_aligned(&b, 5 * MiB);
    give(&b);
    _exit(0);
  }
  check(waitpid(child, &status, 0) == child && status == 0, "a child failed");
}

// threads: many use the pool, even while processes are forked.
static void threads(void) {
  pthread_t all[4];
  for (size_t i = 0; i < 4; i++) {
    void *argument = i < 2 ? (void *)(state + i) : (void *)(8 * MiB);
    check(pthread_create(&all[i], NULL, i < 2 ? churning : taking, argument) == 0, "pthread_create");
  }
  for (int i = 0; i < 40; i++) fork_child();
  stop = 1;
  for (size_t i = 0; i < 4; i++) pthread_join(all[i], NULL);
}

// limit: memory that ends is an error, and what was given back before is memory again.
static void limit(void) {
  static block all[256], whole;
  volatile size_t half = PTRDIFF_MAX;
  size_t count = 0, size = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  check(f != NULL && fscanf(f, "%zu", &size) == 1, "/proc/self/statm");
  fclose(f);
  struct rlimit address_space = {size * (size_t)sysconf(_SC_PAGESIZE) + 256 * MiB, RLIM_INFINITY};
  check(setrlimit(RLIMIT_AS, &address_space) == 0, "setrlimit");
  while (take(&all[count], 4 * MiB + under(8 * MiB))) count++;
  check(malloc(64 * MiB) == NULL && errno == ENOMEM, "malloc is not out of memory");
  errno = EXDEV;
  check(posix_memalign((void **)&whole.begin, 64, 64 * MiB) == ENOMEM && errno == EXDEV, "posix_memalign is not out of memory");
  check(malloc(half) == NULL && aligned_alloc(64, 2 * half - 62) == NULL, "too much memory");
  check(posix_memalign((void **)&whole.begin, 24, 8 * MiB) == EINVAL, "no alignment");
  give_all(all, count);
  check(take(&whole, 200 * MiB), "what was given back is not memory again");
  give(&whole);
}

// last: small blocks get all memory that is left, although the heap grows in large steps.
static void last(void) {
  size_t size = 0, got = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  check(f != NULL && fscanf(f, "%zu", &size) == 1, "/proc/self/statm");
  fclose(f);
  struct rlimit address_space = {size * (size_t)sysconf(_SC_PAGESIZE) + 100 * MiB, RLIM_INFINITY};
  check(setrlimit(RLIMIT_AS, &address_space) == 0, "setrlimit");
  for (char *b; (b = malloc(64 * KiB)) != NULL; got += 64 * KiB) memset(b, 1, 64 * KiB);
  printf("{\"live\": %zu}\n", got);
}

// huge_pages reports whether the mapping with an address is marked for huge pages.
static int huge_pages(const void *address) {
  char line[4096];
  int inside = 0, marked = 0;
  FILE *f = fopen("/proc/self/smaps", "r");
  check(f != NULL, "/proc/self/smaps");
  while (fgets(line, sizeof line, f) != NULL) {
    uintptr_t begin, end;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) inside = begin <= (uintptr_t)address && (uintptr_t)address < end;
    if (inside && strncmp(line, "VmFlags:", 8) == 0) marked = strstr(line, " hg") != NULL;
  }
  fclose(f);
  return marked;
}

// heap: blocks that are too small for the pool are in huge pages too, whichever function takes
// them, however often the heap grows, and when it grows again after it was trimmed. A few may be
// beside little else.
static void heap(void) {
  enum { COUNT = 100 };
  char *all[COUNT];
  for (int round = 0; round < 3; round++) {
    int some = 0;
    for (size_t i = 0; i < COUNT; i++) {
      char *b = all[i] = i % 2 ? malloc(MiB + under(2 * MiB)) : aligned_alloc(64, 64 * (MiB / 64 + under(2 * MiB / 64)));
      check(b != NULL, "no memory");
      some += huge_pages(b + MiB / 2);
    }
    check(some > COUNT * 9 / 10, "blocks are not in huge pages");
    for (size_t i = 0; i < COUNT; i++) free(all[i]);
    gb_trim();
    for (size_t i = 0; i < 100000; i++) check(malloc(KiB) != NULL, "no memory");
  }
}

// sparse: where blocks are few after a trim, they are not in huge pages, which the kernel would
// fill up. Where they are many, they are.
static void sparse(void) {
  enum { COUNT = 4096, EACH = 64 << 10 };
  static char *many[COUNT];
  for (int i = 0; i < COUNT; i++) memset(many[i] = malloc(EACH), 1, EACH);
  for (int i = 0; i < COUNT / 2; i++)
    if (i % 16 != 0) free(many[i]);
  gb_trim();
  memset(malloc(EACH), 1, EACH);
  for (int i = 64; i < COUNT / 2 - 64; i += 16) check(!huge_pages(many[i]), "a block between free ones is in a huge page");
  for (int i = COUNT / 2 + 64; i < COUNT - 64; i += 16) check(huge_pages(many[i]), "a block between others is not in a huge page");
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } tests[] = {{"calls", calls}, {"kernel", kernel}, {"mixed", mixed}, {"steps", steps}, {"less", less}, {"small", small}, {"threads", threads}, {"limit", limit}, {"last", last}, {"heap", heap}, {"sparse", sparse}};
  check(argc == 3, "blocks TEST SEED");
  state = strtoul(argv[2], NULL, 10);
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
    if (strcmp(argv[1], tests[i].name) == 0) tests[i].run();
  return 0;
}
