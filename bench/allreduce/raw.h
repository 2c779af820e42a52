#ifndef GONBATCH_BENCH_RAW_H
#define GONBATCH_BENCH_RAW_H

// raw_find finds the Open MPI that this process has opened. It returns 0 if there is none.
int raw_find(void);

// raw_sum sums the values over all ranks, in place, so many times. It returns MPI's code, and sets
// how long that took, in microseconds.
int raw_sum(float *values, int count, int chain, double *micros);

#endif
