// MPI_Allreduce without anything around it. The binary interface of Open MPI is declared here, as
// in bench/peers/allreduce.c.
#define _GNU_SOURCE
#include "raw.h"

#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

#define IN_PLACE ((void *)1)

static int (*allreduce)(const void *in, void *out, int count, void *type, void *op, void *comm);
static void *world, *number, *sum;

int raw_find(void) {
  *(void **)&allreduce = dlsym(RTLD_DEFAULT, "MPI_Allreduce");
  world = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
  number = dlsym(RTLD_DEFAULT, "ompi_mpi_float");
  sum = dlsym(RTLD_DEFAULT, "ompi_mpi_op_sum");
  return allreduce != NULL && world != NULL && number != NULL && sum != NULL;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int raw_sum(float *values, int count, int chain, double *micros) {
  double start = now();
  int code = 0;
  for (int i = 0; i < chain && code == 0; i++) code = allreduce(IN_PLACE, values, count, number, sum, world);
  *micros = now() - start;
  return code;
}
