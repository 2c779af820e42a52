// The program's sched_yield.
//
// MPI's libraries, XLA's plugin and others call sched_yield in a loop while they wait for another
// process or thread. If a machine has more ranks than CPUs, Linux may then run nothing but these
// loops for minutes (see docs/adr/0033). So a thread that has waited that way for a while sleeps.
#define _GNU_SOURCE
#include "yield.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// In microseconds. A thread waits if it calls sched_yield again within PAUSE: less than it takes to
// use what it has waited for. Once it has waited for PATIENCE, it sleeps for a SHARE-th of the time
// that it has waited, at most LONGEST.
enum { PAUSE = 5, PATIENCE = 1000, SHARE = 16, LONGEST = 1000 };

// A thread's value has two times in microseconds, modulo 2^32: in its upper half when it began to
// wait, in its lower half when sched_yield last returned. Go's own linker, which the kernel uses,
// can't link a thread-local variable.
static pthread_key_t waits;
static atomic_int state;  // 0: there is no key yet, 1: it is being created, 2: it is there.

static int is_ready(void) {
  int seen = 0;
  if (atomic_load(&state) == 2) return 1;
  if (!atomic_compare_exchange_strong(&state, &seen, 1)) return 0;
  if (pthread_key_create(&waits, NULL) != 0) return 0;
  atomic_store(&state, 2);
  return 1;
}

static uint32_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint32_t)(t.tv_sec * 1000000 + t.tv_nsec / 1000);
}

// rest sleeps. By default, Linux would add up to 50 us to it.
static void rest(uint32_t microseconds) {
  int before = errno;
  struct timespec t = {0, (long)microseconds * 1000};
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  nanosleep(&t, NULL);
  errno = before;
}

// sched_yield is that of the C library, except for a thread that has called it without a pause for
// PATIENCE.
int sched_yield(void) {
  if (!is_ready()) return (int)syscall(SYS_sched_yield);
  uint64_t wait = (uintptr_t)pthread_getspecific(waits);
  uint32_t began = (uint32_t)(wait >> 32), last = (uint32_t)wait, t = now();
  if (t - last > PAUSE) began = t;
  uint32_t waited = t - began, share = waited / SHARE;
  int result = 0;
  if (waited < PATIENCE)
    result = (int)syscall(SYS_sched_yield);
  else
    rest(share < LONGEST ? share : LONGEST);
  pthread_setspecific(waits, (void *)(uintptr_t)((uint64_t)began << 32 | now()));
  return result;
}

void gb_wait_begins(void) {
  if (is_ready()) pthread_setspecific(waits, NULL);
}

int gb_yield_is_found(void) { return dlsym(RTLD_DEFAULT, "sched_yield") == (void *)sched_yield; }
