// The XLA custom calls that run collectives over all ranks.
#include <string.h>

#include "frame.h"
#include "plugin.h"

static gb_transport transport;  // A process has only one world.
static int64_t ranks;

static size_t size_of(int dtype) {
  switch (dtype) {
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

static int64_t count_of(const gb_ffi_buffer *b) {
  int64_t count = 1;
  for (int64_t i = 0; i < b->rank; i++) count *= b->dims[i];
  return count;
}

// run takes (x, after). `after` only orders the collectives of a program, by a data dependency.
static gb_ffi_error *run(gb_ffi_call_frame *frame, int kind) {
  if (gb_frame_metadata(frame)) return NULL;
  if (frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  if (frame->args.size < 1 || frame->rets.size != 1)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: wrong number of operands");

  gb_ffi_buffer *x = frame->args.values[0], *y = frame->rets.values[0];
  int64_t given = count_of(x), got = count_of(y);
  size_t size = size_of(x->dtype);
  if (size == 0 || x->dtype != y->dtype)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: unsupported element type");
  int64_t in_count = kind == GB_REDUCE_SCATTER ? got * ranks : kind == GB_ALL_GATHER && got % ranks == 0 ? got / ranks : got;
  if (given != in_count)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: collective: the result does not fit the operand");
  if (kind == GB_ALL_REDUCE && x->data != y->data) memcpy(y->data, x->data, size * (size_t)given);

  const void *in = kind == GB_ALL_REDUCE ? NULL : x->data;
  char error[512];
  if (transport(kind, in, y->data, kind == GB_ALL_GATHER ? given : got, x->dtype, error, sizeof error) != 0)
    return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  return NULL;
}

static gb_ffi_error *all_reduce(gb_ffi_call_frame *frame) { return run(frame, GB_ALL_REDUCE); }
static gb_ffi_error *all_gather(gb_ffi_call_frame *frame) { return run(frame, GB_ALL_GATHER); }
static gb_ffi_error *reduce_scatter(gb_ffi_call_frame *frame) { return run(frame, GB_REDUCE_SCATTER); }

void gb_set_transport(gb_transport t, int number) {
  transport = t;
  ranks = number;
}

void *gb_collective_handler(int kind) {
  switch (kind) {
    case GB_ALL_GATHER:
      return (void *)all_gather;
    case GB_REDUCE_SCATTER:
      return (void *)reduce_scatter;
  }
  return (void *)all_reduce;
}
