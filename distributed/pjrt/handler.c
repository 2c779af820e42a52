// The XLA custom call that reduces a buffer over all ranks.
#include <string.h>

#include "frame.h"
#include "plugin.h"

static gb_transport transport;  // A process has only one world.

static size_t size_of(int dtype) {
  switch (dtype) {
    case GB_FFI_F32:
    case GB_FFI_S32:
      return 4;
    case GB_FFI_F64:
    case GB_FFI_S64:
      return 8;
  }
  return 0;
}

// all_reduce takes (x, after). `after` only orders the collectives of a program, by a data
// dependency.
static gb_ffi_error *all_reduce(gb_ffi_call_frame *frame) {
  if (gb_frame_metadata(frame)) return NULL;
  if (frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  if (frame->args.size < 1 || frame->rets.size != 1)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: all-reduce: wrong number of operands");

  gb_ffi_buffer *x = frame->args.values[0], *y = frame->rets.values[0];
  int64_t count = 1;
  for (int64_t i = 0; i < x->rank; i++) count *= x->dims[i];
  size_t size = size_of(x->dtype);
  if (size == 0)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: all-reduce: unsupported element type");
  if (x->data != y->data) memcpy(y->data, x->data, size * (size_t)count);

  char error[512];
  if (transport(y->data, count, x->dtype, error, sizeof error) != 0) return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  return NULL;
}

void *gb_all_reduce_handler(gb_transport t) {
  transport = t;
  return (void *)all_reduce;
}
