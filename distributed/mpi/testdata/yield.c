// yield compares sched_yield with what its comment promises, for random waits by a clock of its
// own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ns;  // The time.
static int64_t slept_ns;  // By the last call of sched_yield; -1 if it yielded.

static int fake_clock(int id, struct timespec *t) {
  (void)id;
  *t = (struct timespec){clock_ns / 1000000000, clock_ns % 1000000000};
  return 0;
}

static long fake_call(long number, ...) {
  if (number == SYS_sched_yield) {
    slept_ns = -1;
    clock_ns += rand() % 50 == 0 ? rand() % 5000000 : 300;  // Another thread may get the CPU for long.
    return 0;
  }
  va_list arguments;
  va_start(arguments, number);
  slept_ns = va_arg(arguments, const struct timespec *)->tv_nsec;
  va_end(arguments);
  clock_ns += slept_ns + rand() % 100000;
  errno = EINTR;  // As a signal would set it.
  return -1;
}

#define clock_gettime fake_clock
#define syscall fake_call
#include "../yield.c"

static void check(int ok, const char *what, int64_t waited) {
  if (ok) return;
  printf("%s: after %lld ns, it slept for %lld\n", what, (long long)waited, (long long)slept_ns);
  exit(1);
}

int main(int argc, char **argv) {
  gb_yield_begin();
  srand(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
  clock_ns = (((int64_t)1 << 32) - 2000000) * 1000;  // The microseconds wrap around soon.
  for (int wait = 0; wait < 2000; wait++) {
    clock_ns += 1000 * (int64_t)(PAUSE + 2 + rand() % 100000);  // The thread computes.
    int64_t began = clock_ns, length = rand() % 20 * (int64_t)(rand() % 3000000), rested = 0;
    while (clock_ns - began < length) {
      int64_t waited = clock_ns - began;
      errno = 0;
      if (sched_yield() != 0 || errno != 0) return 2;
      if (waited < 999000) check(slept_ns < 0, "a thread rests too early", waited);
      if (waited > 1001000) check(slept_ns > 0, "a thread does not rest", waited);
      check(slept_ns <= waited / 16 + 1000 && slept_ns <= 1000000, "at most a sixteenth of the wait, and 1 ms", waited);
      if (slept_ns > 0) rested += slept_ns;
      clock_ns += rand() % PAUSE * 1000;  // The caller looks whether what it waits for has come.
    }
    if (length > 20000000) check(rested > (clock_ns - began) / 2, "a long wait is mostly rest", rested);
  }
  return 0;
}
