// Go turns a segmentation fault into a panic with a Go stack, by its own signal handler. Some MPI
// libraries, such as UCX, replace that handler when they are loaded or initialised. These functions
// restore Go's handlers.
#define _GNU_SOURCE
#include "library.h"

#include <signal.h>

static struct sigaction saved[NSIG];

void gb_signals_save(void) {
  for (int i = 1; i < NSIG; i++) sigaction(i, NULL, &saved[i]);
}

void gb_signals_restore(void) {
  for (int i = 1; i < NSIG; i++) {
    struct sigaction now;
    if (sigaction(i, NULL, &now) != 0) continue;
    if (now.sa_handler != saved[i].sa_handler || now.sa_flags != saved[i].sa_flags) sigaction(i, &saved[i], NULL);
  }
}
