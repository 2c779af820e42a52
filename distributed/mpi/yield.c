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

// In microseconds. A thread waits if it calls sched_yield again within PAUSE: in between, libraries
// look several times whether what they wait for has come. Once it has waited for PATIENCE, it
// sleeps for a SHARE-th of the time that it has waited, at most LONGEST.
enum { PAUSE = 50, PATIENCE = 1000, SHARE = 16, LONGEST = 1000 };

// A thread's value has two times in microseconds, modulo 2^32: in its upper half when it began to
// wait, in its lower half when sched_yield last returned. Go's own linker, which the kernel uses,
// can't link a thread-local variable.
static pthread_key_t waits;
static atomic_int rests;  // Whether threads that wait sleep. There is a key then.

void gb_yield_begin(void) {
  // It is among the first keys of a process, which take no memory that pthread_setspecific would
  // allocate.
  atomic_store(&rests, pthread_key_create(&waits, NULL) == 0);
}

void gb_yield_end(void) { atomic_store(&rests, 0); }

static uint32_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint32_t)(t.tv_sec * 1000000 + t.tv_nsec / 1000);
}

// rest sleeps. By default, Linux would add up to 50 us to it. The C library's nanosleep could end
// the thread, if another one has cancelled it.
static void rest(uint32_t microseconds) {
  int before = errno;
  struct timespec t = {0, (long)microseconds * 1000};
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  syscall(SYS_nanosleep, &t, NULL);
  errno = before;
}

// sched_yield is that of the C library, except for a thread that has called it without a pause for
// PATIENCE.
int sched_yield(void) {
  if (!atomic_load(&rests)) return (int)syscall(SYS_sched_yield);
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
  if (atomic_load(&rests)) pthread_setspecific(waits, NULL);
}

int gb_functions_are_found(void) {
  return dlsym(RTLD_DEFAULT, "sched_yield") == (void *)sched_yield && dlsym(RTLD_DEFAULT, "pthread_setname_np") == (void *)pthread_setname_np;
}
