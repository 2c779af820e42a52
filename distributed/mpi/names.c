// The program's pthread_setname_np.
//
// XLA's plugin names each thread that it starts. For that, the C library opens a file of the
// thread in /proc/self/task, and Linux keeps an entry for the thread until it ends. When this
// process ends, its parent's wait for it removes those entries, and loops while a thread that has
// no CPU is removing its own: on a full machine for minutes (see docs/adr/0033). So only a thread
// that names itself gets a name, for which no file is needed.
//
// No other package may call pthread_setname_np: it would import the C library's, and in a program
// with both, Go's own linker, which links the kernel's cells, asks for a library without a name.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

enum { LONGEST_NAME = 15 };

int pthread_setname_np(pthread_t thread, const char *name) {
  if (strlen(name) > LONGEST_NAME) return ERANGE;
  if (!pthread_equal(thread, pthread_self())) return 0;
  return prctl(PR_SET_NAME, name) == 0 ? 0 : errno;
}
