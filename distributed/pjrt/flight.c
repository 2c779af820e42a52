// Sums that run while a program computes.
#define _GNU_SOURCE
#include "flight.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

enum state { WAITING, FLYING, LANDED };

struct flight {
  struct flight *next;
  gb_transport transport;
  void *data;
  int64_t count, number;
  int dtype;
  enum state state;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct flight *flights;  // In the order in which they started, until they are finished.
static int64_t started;         // How many have started.
static int running;             // Whether the thread exists.
static char failure[512];       // Why a flight has failed, or empty. The flights after it don't run.

// trace_end records an operation of a flight, or one of all if there is none.
static void trace_end(int64_t began, int kind, const struct flight *f) {
  struct flight all = {.count = 0};
  if (f == NULL) f = &all;
  gb_trace_end(began, kind, (int64_t[]){GB_ALL_REDUCE, f->count, f->dtype, 0, 0, f->number}, 6);
}

// to_fly returns the next flight that has not run. If one has failed, the others only land.
static struct flight *to_fly(void) {
  for (struct flight *f = flights; f != NULL; f = f->next) {
    if (f->state != WAITING) continue;
    if (failure[0] == 0) return f;
    f->state = LANDED;
    pthread_cond_broadcast(&changed);
  }
  return NULL;
}

static void *fly(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    struct flight *f = to_fly();
    if (f == NULL) {
      pthread_cond_wait(&changed, &lock);
      continue;
    }
    f->state = FLYING;
    pthread_mutex_unlock(&lock);
    char error[sizeof failure] = "";
    int64_t began = gb_trace_begin();
    int result = f->transport(GB_ALL_REDUCE, NULL, f->data, f->count, f->dtype, NULL, error, sizeof error);
    trace_end(began, GB_TRACE_TRAVEL, f);
    pthread_mutex_lock(&lock);
    if (result != 0) snprintf(failure, sizeof failure, "%s", error);
    f->state = LANDED;
    pthread_cond_broadcast(&changed);
  }
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
  pthread_setname_np(thread, "gonbatch-flight");
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

// end waits until no flight uses its memory, and forgets them all, and the failure.
static void end(void) {
  while (!all_landed()) pthread_cond_wait(&changed, &lock);
  while (flights != NULL) forget(&flights);
  failure[0] = 0;
}

// failed returns the failure, if there is one. It then ends the flights.
static int failed(char *error, size_t error_size) {
  if (failure[0] == 0) return 0;
  snprintf(error, error_size, "%s", failure);
  end();
  return 1;
}

int gb_flight_start(gb_transport transport, void *data, int64_t count, int dtype, char *error, size_t error_size) {
  int64_t began = gb_trace_begin();
  struct flight *f = calloc(1, sizeof *f);
  if (f == NULL) abort();
  *f = (struct flight){.transport = transport, .data = data, .count = count, .dtype = dtype};
  pthread_mutex_lock(&lock);
  int code = run_thread();
  if (code != 0) {
    pthread_mutex_unlock(&lock);
    free(f);
    snprintf(error, error_size, "gonbatch: collective: can't start a thread: %s", strerror(code));
    return 1;
  }
  struct flight **at = &flights;
  while (*at != NULL) at = &(*at)->next;
  *at = f;
  f->number = ++started;
  trace_end(began, GB_TRACE_START, f);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}

int gb_flight_finish(void *data, char *error, size_t error_size) {
  int64_t began = gb_trace_begin();
  pthread_mutex_lock(&lock);
  struct flight *f;
  while ((f = *find(data)) != NULL && f->state != LANDED) pthread_cond_wait(&changed, &lock);
  if (f == NULL) snprintf(failure, sizeof failure, "gonbatch: collective: XLA has moved a sum that travels while the program computes: set GONBATCH_OVERLAP=off");
  if (f != NULL) trace_end(began, GB_TRACE_WAIT, f);
  int result = failed(error, error_size);
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
  int result = failed(error, error_size);
  pthread_mutex_unlock(&lock);
  return result;
}

void gb_flight_end(void) {
  pthread_mutex_lock(&lock);
  end();
  pthread_mutex_unlock(&lock);
}
