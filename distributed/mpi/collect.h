#ifndef GONBATCH_MPI_COLLECT_H
#define GONBATCH_MPI_COLLECT_H

#include "request.h"

// gb_call is a request with what MPI calls its arguments.
typedef struct {
  gb_request *r;
  gb_team team;
  gb_handle type, operation;
  size_t size;  // Of an element.
} gb_call;

// gb_chunk returns how many elements the next call of MPI takes, if it may take that many bytes.
int64_t gb_chunk(const gb_call *c, int64_t bytes, int64_t done);

// gb_all_reduce runs an all-reduce. It returns 0, or 1 and an error text, as gb_reduce_scatter
// does.
int gb_all_reduce(const gb_call *c);

// gb_exchanges reports whether a request is a reduce-scatter that gb_reduce_scatter runs faster
// than MPI does.
int gb_exchanges(const gb_call *c);

// gb_reduce_scatter runs a reduce-scatter.
int gb_reduce_scatter(const gb_call *c);

#endif
