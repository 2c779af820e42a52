#ifndef GONBATCH_MPI_REQUEST_H
#define GONBATCH_MPI_REQUEST_H

#include "library.h"

// gb_request is a call of gb_mpi_transport.
typedef struct {
  int kind;
  const void *send;
  void *data;
  int64_t count;
  int type;
  const int64_t *form;  // It may be NULL.
  char *error;
  size_t error_size;
} gb_request;

// gb_team is the ranks that a collective is over.
typedef struct {
  gb_handle comm;
  int size, place;  // The number of ranks, and this one's place among them.
} gb_team;

// gb_all_ranks is the world. Its size is 0 until MPI is initialised.
extern gb_team gb_all_ranks;

// gb_failed writes the error of a call of MPI, and returns 1.
int gb_failed(const char *call, int code, char *error, size_t error_size);

// gb_agree compares a collective with those of the other ranks, unless it has compared it in this
// place before. It returns 0 if all call the same, or 1 and an error text.
int gb_agree(const gb_request *r);

// gb_find_team finds the ranks of a collective. Where they are a group that this process has not
// used, it is collective over the world. It returns 0, or 1 and an error text.
int gb_find_team(const gb_request *r, gb_team *team);

// gb_operation returns MPI's operation for a request. It returns 0, or 1 and an error text.
int gb_operation(const gb_request *r, gb_handle *operation);

// gb_collect runs a collective. It returns 0, or 1 and an error text.
int gb_collect(gb_request *r);

#endif
