// Records what the custom calls of compiled programs do.
#define _GNU_SOURCE
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

atomic_int gb_trace_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
  gb_operation *operations;
  int64_t count, most, lost;
  int64_t began;  // Operations that began before are another recording's.
} recording;

// gb_trace_now is Go's clock, so that operations lie in the steps that Go measures.
int64_t gb_trace_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// this_thread is not kept in a thread-local variable, which Go's own linker can't link: the kernel
// uses it, because it is faster.
static int32_t this_thread(void) { return (int32_t)syscall(SYS_gettid); }

void gb_trace_add(int64_t began, int kind, const int64_t *numbers, int64_t count) {
  gb_operation o = {.begin = began, .end = gb_trace_now(), .kind = kind, .thread = this_thread()};
  if (o.end < began) o.end = began;  // The clock was set back.
  if (count > GB_TRACE_NUMBERS) count = GB_TRACE_NUMBERS;
  memcpy(o.numbers, numbers, (size_t)count * sizeof *numbers);
  pthread_mutex_lock(&lock);
  if (recording.operations != NULL && began >= recording.began) {
    if (recording.count < recording.most)
      recording.operations[recording.count++] = o;
    else
      recording.lost++;
  }
  pthread_mutex_unlock(&lock);
}

void gb_trace_start(int64_t most) {
  gb_operation *memory = malloc((size_t)most * sizeof *memory);
  if (memory == NULL) abort();
  pthread_mutex_lock(&lock);
  free(recording.operations);
  recording.operations = memory;
  recording.count = recording.lost = 0;
  recording.most = most;
  recording.began = gb_trace_now();
  atomic_store(&gb_trace_on, 1);
  pthread_mutex_unlock(&lock);
}

int64_t gb_trace_stop(gb_operation **operations, int64_t *lost) {
  pthread_mutex_lock(&lock);
  atomic_store(&gb_trace_on, 0);
  *operations = recording.operations;
  *lost = recording.lost;
  int64_t count = recording.count;
  recording.operations = NULL;
  recording.count = recording.lost = 0;
  pthread_mutex_unlock(&lock);
  return count;
}
