// The CPUs that XLA counts while it compiles.
//
// XLA divides a loop that mostly moves memory among the square root of the CPUs that the process
// may use (xla/service/cpu/parallel_task_assignment.cc): among 2 of 4, or 8 of 64. No option
// changes that. It asks for the CPUs by the function below, which the whole program uses.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keep.h"

#ifdef __GLIBC__

// How many CPUs a thread finds; NULL: those that there are. Go's own linker, which the kernel uses,
// can't link a thread-local variable.
static pthread_key_t counted;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int known;  // Whether there is the key: the function below is called early.

static void create(void) { atomic_store(&known, pthread_key_create(&counted, NULL) == 0); }

// sched_getaffinity is that of the C library, except while this thread compiles.
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cpus) {
  long used = syscall(SYS_sched_getaffinity, pid, size, cpus);
  if (used < 0) return -1;
  memset((char *)cpus + used, 0, size - used);
  size_t wanted = atomic_load(&known) ? (size_t)(uintptr_t)pthread_getspecific(counted) : 0;
  if (wanted == 0) return 0;
  if (wanted > 8 * size) {  // The caller tries again with a larger set.
    errno = EINVAL;
    return -1;
  }
  memset(cpus, 0, size);
  for (size_t i = 0; i < wanted; i++) CPU_SET_S(i, size, cpus);
  return 0;
}

int gb_can_count(void) { return dlsym(RTLD_DEFAULT, "sched_getaffinity") == (void *)sched_getaffinity; }

gb_pjrt_error *gb_compile_for(gb_pjrt_compile_args *args, int cpus) {
  pthread_once(&once, create);
  if (atomic_load(&known)) pthread_setspecific(counted, (void *)(uintptr_t)cpus);
  gb_pjrt_error *err = gb_compile(args);
  if (atomic_load(&known)) pthread_setspecific(counted, NULL);
  return err;
}

#else

int gb_can_count(void) { return 0; }

gb_pjrt_error *gb_compile_for(gb_pjrt_compile_args *args, int cpus) {
  (void)cpus;
  return gb_compile(args);
}

#endif
