// The XLA custom calls that run collectives.
#include <string.h>

#include "flight.h"
#include "frame.h"
#include "plugin.h"
#include "trace.h"

static gb_transport transport;  // A process has only one world.
static int64_t ranks;

// The numbers of a form: see does.go. A transport gets those from the detail on: see Transport in
// plugin.go.
enum { FORM_KIND, FORM_IN_PLACE, FORM_DETAIL, FORM_REDUCTION, FORM_ROOT, FORM_RANKS, FORM_PLACES };

static size_t size_of(int dtype) {
  switch (dtype) {
    case GB_FFI_U8:
      return 1;
    case GB_FFI_F16:
    case GB_FFI_BF16:
      return 2;
    case GB_FFI_F32:
    case GB_FFI_S32:
      return 4;
    case GB_FFI_F64:
    case GB_FFI_S64:
      return 8;
  }
  return 0;
}

// group_size returns the number of ranks in each group, if all have the same.
static int64_t group_size(const int64_t *form) {
  if (form[FORM_RANKS] == 0) return ranks;
  int64_t size = 0;
  for (int64_t i = 0; i < form[FORM_RANKS]; i++) size += form[FORM_PLACES + 2 * i] == 0;
  return size;
}

// count_for returns the count of a transport, or -1 if the result doesn't fit the operand.
static int64_t count_for(int kind, int64_t given, int64_t got, int64_t members) {
  switch (kind) {
    case GB_ALL_GATHER: return got == given * members ? given : -1;
    case GB_REDUCE_SCATTER: return given == got * members ? got : -1;
    case GB_ALL_TO_ALL: return given == got && got % members == 0 ? got / members : -1;
  }
  return given == got ? got : -1;
}

// carry runs a collective to which this rank gives that many elements.
static int carry(int64_t given, const void *in, void *out, int64_t count, int dtype, const int64_t *form, char *error, size_t error_size) {
  int kind = (int)form[FORM_KIND];
  int64_t began = gb_trace_begin();
  int result = transport(kind, in, out, count, dtype, form + FORM_DETAIL, error, error_size);
  gb_trace_end(began, GB_TRACE_COLLECTIVE, (int64_t[]){kind, given, dtype, form[FORM_REDUCTION], form[FORM_RANKS]}, 5);
  return result;
}

// skipped reports whether XLA calls a handler only to prepare, or with the wrong number of operands
// or results; *error is then the result.
static int skipped(gb_ffi_call_frame *frame, int64_t operands, int64_t results, gb_ffi_error **error) {
  *error = NULL;
  if (gb_frame_prepares(frame)) return 1;
  if (frame->args.size == operands && frame->rets.size == results) return 0;
  *error = gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: wrong number of operands or results");
  return 1;
}

static int is_form(const gb_ffi_buffer *b) {
  int64_t length = gb_count(b);
  return b->dtype == GB_FFI_S64 && length >= FORM_PLACES && length == FORM_PLACES + 2 * ((const int64_t *)b->data)[FORM_RANKS];
}

// It takes (x, after, form). `after` only orders the collectives of a program, by a data
// dependency. In place, x has the memory of the result: that of an all-gather then has room for the
// values of all ranks.
gb_ffi_error *gb_collective_call(gb_ffi_call_frame *frame) {
  gb_ffi_error *failure;
  if (skipped(frame, 3, 1, &failure)) return failure;
  gb_ffi_buffer *x = frame->args.values[0], *y = frame->rets.values[0], *b = frame->args.values[2];
  if (!is_form(b)) return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: malformed form");
  const int64_t *form = b->data;
  int kind = (int)form[FORM_KIND], in_place = form[FORM_IN_PLACE] != 0;
  size_t size = size_of(x->dtype);
  if (size == 0 || x->dtype != y->dtype)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: unsupported element type");
  int64_t members = group_size(form), given = gb_count(x);
  if (in_place && kind == GB_ALL_GATHER) given /= members;
  int64_t count = count_for(kind, given, gb_count(y), members);
  if (count < 0)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: the result does not fit the operand");
  if (in_place && x->data != y->data) memcpy(y->data, x->data, size * (size_t)gb_count(x));

  char error[512];
  if (gb_flight_drain(error, sizeof error) != 0) return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  if (carry(given, in_place ? NULL : x->data, y->data, count, x->dtype, form, error, sizeof error) != 0)
    return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  return NULL;
}

// half runs a half of a sum. It takes (x, after) and returns (x, done), where `done` exists only
// after it.
static gb_ffi_error *half(gb_ffi_call_frame *frame, int starts) {
  gb_ffi_error *error;
  if (skipped(frame, 2, 2, &error)) return error;
  gb_ffi_buffer *x = frame->args.values[0], *y = frame->rets.values[0], *done = frame->rets.values[1];
  size_t size = size_of(x->dtype);
  int64_t count = gb_count(x);
  if (size == 0 || x->dtype != y->dtype || count != gb_count(y))
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: the result does not fit the operand");
  char text[512];
  if (!starts && gb_flight_finish(x->data, text, sizeof text) != 0) return gb_frame_fail(frame, GB_FFI_INTERNAL, text);
  // XLA gives both the same memory, unless it needs x for something else too.
  if (x->data != y->data) memcpy(y->data, x->data, size * (size_t)count);
  memset(done->data, 0, size_of(done->dtype));
  if (starts && gb_flight_start(transport, y->data, count, y->dtype, text, sizeof text) != 0)
    return gb_frame_fail(frame, GB_FFI_INTERNAL, text);
  return NULL;
}

gb_ffi_error *gb_start_call(gb_ffi_call_frame *frame) { return half(frame, 1); }
gb_ffi_error *gb_finish_call(gb_ffi_call_frame *frame) { return half(frame, 0); }

void gb_set_transport(gb_transport t, int number) {
  transport = t;
  ranks = number;
}
