// Flights of programs that fail, on several threads.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../flight.h"

enum { FLIGHTS = 4, ROUNDS = 300 };

static atomic_int refuses;  // The flight that fails, counted down; 0: none.
static atomic_int flying;
static int64_t memory[2][FLIGHTS];

// transport adds one to the data, after a while.
static int transport(int kind, const void *in, void *out, int64_t count, int dtype, const int64_t *form, char *error, size_t error_size) {
  (void)kind, (void)in, (void)count, (void)dtype, (void)form;
  if (atomic_fetch_add(&flying, 1) != 0) abort();
  usleep(rand() % 100);
  ++*(int64_t *)out;
  atomic_fetch_sub(&flying, 1);
  if (atomic_load(&refuses) == 0 || atomic_fetch_sub(&refuses, 1) != 1) return 0;
  snprintf(error, error_size, "the network failed");
  return 1;
}

// caller is a thread of a program. It starts flights, or finishes them.
typedef struct {
  int64_t *data;
  const char *want;  // Its only error, or NULL.
  const char *wrong;
  int fails;
} caller;

static int unexpected(caller *c, int result, const char *error) {
  if (result != 0 && (c->want == NULL || strcmp(error, c->want) != 0)) c->wrong = strdup(error);
  c->fails += result;
  return result;
}

static void *finish(void *of) {
  caller *c = of;
  char error[512];
  for (int i = 0; i < FLIGHTS; i++)
    if (unexpected(c, gb_flight_finish(&c->data[i], error, sizeof error), error)) break;
  return NULL;
}

static void *kernel_fails(void *of) {
  caller *c = of;
  char error[512];
  usleep(rand() % 300);
  gb_flight_end("the kernel failed", error, sizeof error);
  unexpected(c, 1, error);
  return NULL;
}

static int start(caller *c) {
  char error[512];
  for (int i = 0; i < FLIGHTS; i++)
    if (unexpected(c, gb_flight_start(transport, &c->data[i], 1, 11, error, sizeof error), error)) return 1;
  return 0;
}

static int wrong(const char *what, int round, const caller *c) {
  if (c->wrong != NULL) printf("%s, round %d: got the error %s\n", what, round, c->wrong);
  return c->wrong != NULL;
}

// fail_on_thread lets a kernel fail on another thread, while the program finishes its flights.
static int fail_on_thread(int round) {
  caller program = {.data = memory[0], .want = "the kernel failed"}, kernel = program;
  pthread_t threads[2];
  gb_flight_next();
  start(&program);
  pthread_create(&threads[0], NULL, finish, &program);
  pthread_create(&threads[1], NULL, kernel_fails, &kernel);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  if (wrong("a program with a kernel", round, &program) || wrong("a kernel", round, &kernel)) return 1;
  if (!start(&program)) return printf("round %d: a failed program starts flights\n", round), 1;
  return wrong("a failed program", round, &program);
}

// fail_in_flight lets a flight fail; a kernel fails after it.
static int fail_in_flight(int round) {
  atomic_store(&refuses, 1 + rand() % FLIGHTS);
  caller program = {.data = memory[1], .want = "the network failed"};
  gb_flight_next();
  if (!start(&program)) finish(&program);
  if (program.fails == 0) return printf("round %d: no failure of the network\n", round), 1;
  char error[512];
  if (!unexpected(&program, gb_flight_drain(error, sizeof error), error)) return printf("round %d: no failure later\n", round), 1;
  kernel_fails(&program);
  atomic_store(&refuses, 0);
  return wrong("a program with a network", round, &program);
}

// succeed runs a program after one that has failed. Another one begins meanwhile.
static int succeed(int round) {
  caller program = {.data = memory[0]};
  int64_t before = memory[0][FLIGHTS - 1];
  char error[512];
  gb_flight_next();
  unexpected(&program, gb_flight_drain(error, sizeof error), error);
  start(&program);
  gb_flight_next();
  finish(&program);
  if (memory[0][FLIGHTS - 1] != before + 1) return printf("round %d: a flight is missing\n", round), 1;
  return wrong("a program", round, &program);
}

// move finishes what was never started.
static int move(int round) {
  int64_t moved;
  char error[512];
  if (gb_flight_finish(&moved, error, sizeof error) && strstr(error, "XLA has moved a sum") != NULL) return 0;
  return printf("round %d: no error of a sum that was moved\n", round), 1;
}

int main(void) {
  for (int round = 0; round < ROUNDS; round++)
    if (fail_on_thread(round) || succeed(round) || fail_in_flight(round) || succeed(round) || move(round)) return 1;
  return 0;
}
