// A team of threads that compute the parts of a kernel.
//
// XLA calls kernels from any thread of its pool, and OpenMP has a team of its own for each thread
// that calls it: together several times as many threads as CPUs, of which each kernel wakes others.
// One team, whose members each compute a part with oneDNN on one thread, has no more threads than
// CPUs, and they are awake if they have just computed.
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "library.h"

// How long a thread keeps its CPU while it waits, in nanoseconds. XLA's threads need the CPU
// between two kernels.
enum { SHORT_WAIT = 50 * 1000, LONG_WAIT = 1000 * 1000 };

// team computes one kernel at a time. Its caller computes part 0.
static struct {
  gb_dnn_task task;
  const void *kernel;
  int parts;
  uint64_t floats;  // The caller's control register.
  int members;
  atomic_uint calls;    // Rises when there is something to compute.
  atomic_uint pending;  // Members that have not answered the last call.
  atomic_uint asleep;   // Members that wait for a call and must be woken.
  atomic_int failed;
} team;

// seat is what a member must know when it begins.
static struct {
  int part;
  unsigned calls;
} seats[GB_DNN_MOST_PARTS];

static void futex(atomic_uint *word, int operation, unsigned value) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void pause_briefly(void) {
  for (int i = 0; i < 16; i++) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
  }
}

// watch returns when the word has another value, or after a while.
static void watch(atomic_uint *word, unsigned value) {
  int64_t end = now() + (gb_dnn.spins ? LONG_WAIT : SHORT_WAIT);
  while (atomic_load(word) == value && now() < end) pause_briefly();
}

// next_call returns when there has been a call after `last`.
static void next_call(unsigned last) {
  watch(&team.calls, last);
  while (atomic_load(&team.calls) == last) {
    atomic_fetch_add(&team.asleep, 1);
    futex(&team.calls, FUTEX_WAIT, last);
    atomic_fetch_sub(&team.asleep, 1);
  }
}

// control and set_control read and write the control register of the thread's floating-point unit.
// XLA's threads take denormal numbers for 0; all parts must.
static uint64_t control(void) {
  uint64_t value = 0;
#if defined(__x86_64__)
  value = _mm_getcsr();
#elif defined(__aarch64__)
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
#endif
  return value;
}

static void set_control(uint64_t value) {
#if defined(__x86_64__)
  _mm_setcsr((unsigned)value);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(value));
#else
  (void)value;
#endif
}

static void compute(int part) {
  if (part < team.parts) set_control(team.floats);
  if (part < team.parts && team.task(team.kernel, part)) atomic_store(&team.failed, 1);
}

static void *member(void *seat) {
  int part = seats[(intptr_t)seat].part;
  if (gb_dnn.set_threads != NULL) gb_dnn.set_threads(1);
  for (unsigned calls = seats[(intptr_t)seat].calls;; calls++) {
    next_call(calls);
    compute(part);
    if (atomic_fetch_sub(&team.pending, 1) == 1) futex(&team.pending, FUTEX_WAKE, 1);
  }
  return NULL;
}

// hire starts a thread. It leaves all signals to the others.
static int hire(void) {
  int part = team.members + 1;
  seats[part].part = part;
  seats[part].calls = atomic_load(&team.calls);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int failed = pthread_create(&thread, NULL, member, (void *)(intptr_t)part);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) return 1;
  pthread_detach(thread);
  team.members++;
  return 0;
}

static int threads_of_team(void) { return gb_dnn.threads < GB_DNN_MOST_PARTS ? gb_dnn.threads : GB_DNN_MOST_PARTS; }

// is_complete hires the missing members, and reports whether there are enough.
static int is_complete(int threads) {
  while (team.members < threads - 1)
    if (hire()) return 0;
  return 1;
}

int gb_dnn_parts(int64_t rows) {
  int threads = threads_of_team();
  int even = rows % threads == 0 || rows >= 4 * threads;
  if (gb_dnn.set_threads == NULL || rows < threads || !even || !is_complete(threads)) return 1;
  gb_dnn.set_threads(1);
  return threads;
}

int gb_dnn_own_parts(int64_t rows) {
  int threads = threads_of_team();
  if (!is_complete(threads) || rows < 1) return 1;
  return rows < threads ? (int)rows : threads;
}

int64_t gb_dnn_part(int64_t rows, int parts, int part) {
  int64_t longer = rows % parts;  // That many parts have a row more.
  return rows / parts * part + (part < longer ? part : longer);
}

int gb_dnn_together(gb_dnn_task task, const void *kernel, int parts) {
  if (parts == 1) return task(kernel, 0);
  team.task = task, team.kernel = kernel, team.parts = parts, team.floats = control();
  atomic_store(&team.failed, 0);
  atomic_store(&team.pending, team.members);
  atomic_fetch_add(&team.calls, 1);
  if (atomic_load(&team.asleep) > 0) futex(&team.calls, FUTEX_WAKE, INT_MAX);
  compute(0);
  for (unsigned pending; (pending = atomic_load(&team.pending)) > 0;) {
    watch(&team.pending, pending);
    if (atomic_load(&team.pending) == pending) futex(&team.pending, FUTEX_WAIT, pending);
  }
  return atomic_load(&team.failed);
}
