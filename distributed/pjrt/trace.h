#ifndef GONBATCH_PJRT_TRACE_H
#define GONBATCH_PJRT_TRACE_H

#include <stdatomic.h>
#include <stdint.h>

// What the custom calls of compiled programs do, and when, while a recording is on. trace.go reads
// it; nothing else knows the layout.

// The kinds of operations. Those of collectives have these numbers: the kind of collective, the
// elements that this rank gives, their type, the reduction, and how many ranks are divided into
// groups (0: they are one).
enum {
  GB_TRACE_CONVOLUTION = 1,  // The numbers are its form.
  GB_TRACE_PRODUCT,          // Its form.
  GB_TRACE_RANDOM,           // How many bytes.
  GB_TRACE_COLLECTIVE,       // One that stops the program.
  GB_TRACE_START,            // The start of a flight.
  GB_TRACE_WAIT,             // The wait for the end of a flight or, if it has no elements, of all.
  GB_TRACE_TRAVEL,           // The flight itself.
  GB_TRACE_COLUMNS,          // The form of a sum over the rows of a matrix.
  GB_TRACE_ADAM,             // How many weights.
  GB_TRACE_TRAINED,          // The form of a product that is the gradient of an update.
};

enum { GB_TRACE_NUMBERS = 19 };  // As many as a convolution has.

typedef struct {
  int64_t begin, end;  // Nanoseconds since 1970.
  int32_t kind, thread;
  int64_t numbers[GB_TRACE_NUMBERS];
} gb_operation;

// gb_trace_on is whether a recording is on.
extern atomic_int gb_trace_on;

// gb_trace_now returns the time, and gb_trace_add records an operation that ends now: they are
// parts of what follows.
int64_t gb_trace_now(void);
void gb_trace_add(int64_t began, int kind, const int64_t *numbers, int64_t count);

// gb_trace_begin returns when an operation begins, or 0 if no recording is on.
static inline int64_t gb_trace_begin(void) {
  return atomic_load_explicit(&gb_trace_on, memory_order_relaxed) ? gb_trace_now() : 0;
}

// gb_trace_end records an operation that ends now. Any thread may call it.
static inline void gb_trace_end(int64_t began, int kind, const int64_t *numbers, int64_t count) {
  if (began != 0) gb_trace_add(began, kind, numbers, count);
}

// gb_trace_start begins a recording, and discards one that is on. It has memory for that many
// operations: the first ones.
void gb_trace_start(int64_t most);

// gb_trace_stop ends the recording. It returns how many operations there are and how many more
// there was no memory for, and the operations, in the order of their ends, which the caller frees.
int64_t gb_trace_stop(gb_operation **operations, int64_t *lost);

#endif
