// Times MPI_Allreduce, in place, without anything else: what bench/allreduce is compared with. It
// takes the same arguments, and rank 0 prints the same line.
//
//   cc -O3 -o allreduce allreduce.c -l:libmpi.so.40
//
// The tests install Open MPI without its headers, so its binary interface is declared here, as in
// package distributed/mpi: its constants are the addresses of these variables.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char ompi_mpi_comm_world, ompi_mpi_float, ompi_mpi_op_sum;
#define WORLD ((void *)&ompi_mpi_comm_world)
#define FLOAT ((void *)&ompi_mpi_float)
#define SUM ((void *)&ompi_mpi_op_sum)
#define IN_PLACE ((void *)1)
enum { MAX_VERSION = 256 };

int MPI_Init(int *argc, char ***argv);
int MPI_Comm_rank(void *comm, int *rank);
int MPI_Comm_size(void *comm, int *size);
int MPI_Get_library_version(char *version, int *length);
int MPI_Allreduce(const void *in, void *out, int count, void *type, void *op, void *comm);
int MPI_Abort(void *comm, int code);
int MPI_Finalize(void);
double MPI_Wtime(void);

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// take returns the median time of an all-reduce, in microseconds.
static double take(long bytes, int chain, int blocks, int rank, int size) {
  long count = bytes / (long)sizeof(float);
  float *values = malloc((size_t)bytes);
  double *times = malloc(sizeof(double) * (size_t)blocks);
  if (values == NULL || times == NULL) MPI_Abort(WORLD, 1);
  for (long i = 0; i < count; i++) values[i] = (float)(rank + 1);
  MPI_Allreduce(IN_PLACE, values, (int)count, FLOAT, SUM, WORLD);
  for (long i = 0; i < count; i++) {
    if (values[i] != (float)(size * (size + 1) / 2)) {
      fprintf(stderr, "the sum at %ld is %g\n", i, values[i]);
      MPI_Abort(WORLD, 1);
    }
  }
  for (int i = 0; i <= blocks; i++) {
    double start = MPI_Wtime();
    for (int j = 0; j < chain; j++) MPI_Allreduce(IN_PLACE, values, (int)count, FLOAT, SUM, WORLD);
    if (i > 0) times[i - 1] = MPI_Wtime() - start;  // The first block is a warm-up.
  }
  qsort(times, (size_t)blocks, sizeof(double), by_size);
  double median = times[blocks / 2] / chain * 1e6;
  free(times);
  free(values);
  return median;
}

int main(int argc, char **argv) {
  int rank, size, length;
  char version[MAX_VERSION];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &size);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = 0;
  if (rank == 0) printf("{\"version\": \"%s\", \"micros\": [", version);
  for (int i = 1; i < argc; i++) {
    long bytes;
    int chain, blocks;
    if (sscanf(argv[i], "%ld:%d:%d", &bytes, &chain, &blocks) != 3 || bytes < 4 || chain < 1 || blocks < 1) {
      fprintf(stderr, "%s: want BYTES:CHAIN:BLOCKS\n", argv[i]);
      MPI_Abort(WORLD, 2);
    }
    double median = take(bytes, chain, blocks, rank, size);
    if (rank == 0) printf("%s%.3f", i > 1 ? ", " : "", median);
  }
  if (rank == 0) printf("]}\n");
  MPI_Finalize();
  return 0;
}
