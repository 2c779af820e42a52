// MPI's operations. MPI's own minimum and maximum of floats may depend on the order of the ranks:
// of NaN and another number, and of 0 and -0. Ours are XLA's: NaN if one of them is NaN, and -0 is
// less than 0.
#include <math.h>
#include <stdio.h>

#include "request.h"

enum { FORM_REDUCTION = 1 };
enum { SUM, MIN, MAX };

#define EXTREME(name, type, is_first)                                       \
  static void name(void *in, void *inout, int *length, void *unused) {      \
    (void)unused;                                                           \
    const type *a = in;                                                     \
    type *b = inout;                                                        \
    for (int i = 0; i < *length; i++) {                                     \
      if (isnan(a[i]) || isnan(b[i]))                                       \
        b[i] = (type)NAN;                                                   \
      else if (is_first)                                                    \
        b[i] = a[i];                                                        \
    }                                                                       \
  }

EXTREME(min_float, float, a[i] < b[i] || (a[i] == b[i] && signbit(a[i])))
EXTREME(max_float, float, a[i] > b[i] || (a[i] == b[i] && !signbit(a[i])))
EXTREME(min_double, double, a[i] < b[i] || (a[i] == b[i] && signbit(a[i])))
EXTREME(max_double, double, a[i] > b[i] || (a[i] == b[i] && !signbit(a[i])))

typedef void (*function)(void *, void *, int *, void *);

static const function functions[2][2] = {{min_float, max_float}, {min_double, max_double}};
static gb_handle created[2][2];  // 0 until they are used.

// of_floats returns an operation for floats.
static int of_floats(const gb_request *r, int is_double, int is_max, gb_handle *operation) {
  gb_handle *known = &created[is_double][is_max];
  if (*known == 0) {
    int code = gb_mpi.op_create((void *)functions[is_double][is_max], 1, known);
    if (code != 0) return gb_failed("MPI_Op_create", code, r->error, r->error_size);
  }
  *operation = *known;
  return 0;
}

int gb_operation(const gb_request *r, gb_handle *operation) {
  int reduction = r->form == NULL ? SUM : (int)r->form[FORM_REDUCTION];
  if (reduction < SUM || reduction > MAX) {
    snprintf(r->error, r->error_size, "rank %d of %d: unknown reduction %d", gb_all_ranks.place, gb_all_ranks.size, reduction);
    return 1;
  }
  if (reduction != SUM && (r->type == GB_FLOAT32 || r->type == GB_FLOAT64))
    return of_floats(r, r->type == GB_FLOAT64, reduction == MAX, operation);
  *operation = reduction == SUM ? gb_mpi.sum : reduction == MIN ? gb_mpi.min : gb_mpi.max;
  return 0;
}
