// Sums that run while a program computes.
#define _GNU_SOURCE
#include "flight.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "trace.h"

enum state { WAITING, FLYING, LANDED };

struct flight {
  struct flight *next;
  gb_transport transport;
  void *data;
  int64_t count;
  int dtype;
  enum state state;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct flight *flights;  // In the order in which they started, until they are finished.
static int running;             // Whether the thread exists.

// failure is why a program has failed, and when, by the number of the last one that had begun. If
// it was a flight, those after it don't run.
static struct {
  int known, in_flight;
  int64_t program;
  char text[512];
} failure;

static atomic_llong programs;  // How many have begun.

// is_new reports whether the failure is of a program that may still run.
static int is_new(void) { return failure.known && failure.program == atomic_load(&programs); }

// record keeps the first failure of a program.
static void record(int in_flight, const char *text) {
  if (is_new()) return;
  failure.known = 1;
  failure.in_flight = in_flight;
  failure.program = atomic_load(&programs);
  snprintf(failure.text, sizeof failure.text, "%s", text);
}

// trace_end records an operation of a flight, or one of all if there is none.
static void trace_end(int64_t began, int kind, const struct flight *f) {
  struct flight all = {.count = 0};
  if (f == NULL) f = &all;
  gb_trace_end(began, kind, (int64_t[]){GB_ALL_REDUCE, f->count, f->dtype, 0, 0}, 5);
}

// to_fly returns the next flight that has not run. If one has failed, the others only land.
static struct flight *to_fly(void) {
  for (struct flight *f = flights; f != NULL; f = f->next) {
    if (f->state != WAITING) continue;
    if (!failure.known || !failure.in_flight) return f;
    f->state = LANDED;
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

static void *fly(void *unused) {
  (void)unused;
  prctl(PR_SET_NAME, "gonbatch-flight");
  pthread_mutex_lock(&lock);
  for (;;) {
    struct flight *f = to_fly();
    if (f == NULL) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    f->state = FLYING;
    pthread_mutex_unlock(&lock);
    char error[sizeof failure.text] = "";
    int64_t began = gb_trace_begin();
    int result = f->transport(GB_ALL_REDUCE, NULL, f->data, f->count, f->dtype, NULL, error, sizeof error);
    trace_end(began, GB_TRACE_TRAVEL, f);
    pthread_mutex_lock(&lock);
    if (result != 0) record(1, error);
    f->state = LANDED;
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

// run_thread starts the thread, which lasts as long as the process. Go handles signals elsewhere.
static int run_thread(void) {
  if (running) return 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int code = pthread_create(&thread, NULL, fly, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (code != 0) return code;
  pthread_detach(thread);
  running = 1;
  return 0;
}

static int all_landed(void) {
  for (struct flight *f = flights; f != NULL; f = f->next)
    if (f->state != LANDED) return 0;
  return 1;
}

static struct flight **find(void *data) {
  struct flight **at = &flights;
  while (*at != NULL && (*at)->data != data) at = &(*at)->next;
  return at;
}

static void forget(struct flight **at) {
  struct flight *f = *at;
  *at = f->next;
  free(f);
}

// failed writes the failure, and returns 1 once no flight uses its memory. All are forgotten.
static int failed(char *error, size_t error_size) {
  snprintf(error, error_size, "%s", failure.text);
  while (!all_landed()) pthread_cond_wait(&changed, &lock);
  while (flights != NULL) forget(&flights);
  pthread_cond_broadcast(&changed);
  return 1;
}

// append adds a flight to those that have started.
static void append(struct flight *f) {
  struct flight **at = &flights;
  while (*at != NULL) at = &(*at)->next;
  *at = f;
  pthread_cond_broadcast(&changed);
}

// begin refuses a flight of a program that has failed: nobody would wait for it.
static int begin(char *error, size_t error_size) {
  if (is_new()) return failed(error, error_size);
  failure.known = 0;
  int code = run_thread();
  if (code != 0) snprintf(error, error_size, "gonbatch: collective: can't start a thread: %s", strerror(code));
  return code != 0;
}

int gb_flight_start(gb_transport transport, void *data, int64_t count, int dtype, char *error, size_t error_size) {
  int64_t began = gb_trace_begin();
  struct flight *f = calloc(1, sizeof *f);
  if (f == NULL) abort();
  *f = (struct flight){.transport = transport, .data = data, .count = count, .dtype = dtype};
  pthread_mutex_lock(&lock);
  int result = begin(error, error_size);
  if (result == 0) {
    append(f);
    trace_end(began, GB_TRACE_START, f);
  } else {
    free(f);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

int gb_flight_finish(void *data, char *error, size_t error_size) {
  int64_t began = gb_trace_begin();
  pthread_mutex_lock(&lock);
  struct flight *f;
  while ((f = *find(data)) != NULL && f->state != LANDED) pthread_cond_wait(&changed, &lock);
  if (f == NULL && !failure.known) record(0, "gonbatch: collective: XLA has moved a sum that travels while the program computes: set GONBATCH_OVERLAP=off");
  if (f != NULL) trace_end(began, GB_TRACE_WAIT, f);
  int result = failure.known ? failed(error, error_size) : 0;
  if (result == 0) forget(find(data));
  pthread_mutex_unlock(&lock);
  return result;
}

int gb_flight_drain(char *error, size_t error_size) {
  pthread_mutex_lock(&lock);
  if (!all_landed()) {
    int64_t began = gb_trace_begin();
    while (!all_landed()) pthread_cond_wait(&changed, &lock);
    trace_end(began, GB_TRACE_WAIT, NULL);
  }
  int result = is_new() && failure.in_flight ? failed(error, error_size) : 0;
  pthread_mutex_unlock(&lock);
  return result;
}

void gb_flight_end(const char *message, char *error, size_t error_size) {
  pthread_mutex_lock(&lock);
  record(0, message);
  failed(error, error_size);
  pthread_mutex_unlock(&lock);
}

void gb_flight_next(void) { atomic_fetch_add(&programs, 1); }
