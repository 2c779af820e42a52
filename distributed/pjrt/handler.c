// The XLA custom call that reduces a buffer over all ranks.
#include <stdio.h>
#include <string.h>

#include "abi.h"
#include "plugin.h"

static gb_transport transport;  // A process has only one world.

static gb_ffi_error *fail(const gb_ffi_call_frame *frame, int code, const char *message) {
  gb_ffi_error_create_args args = {.struct_size = sizeof args, .message = message, .code = code};
  return frame->api->error_create(&args);
}

// answer_metadata tells XLA which FFI version this handler supports. It returns the version that
// XLA has, because the handler uses only the part of the interface that has not changed since
// version 0.1.
static int answer_metadata(const gb_ffi_call_frame *frame) {
  for (gb_ffi_extension *e = frame->extension_start; e != NULL; e = e->next) {
    if (e->type != GB_FFI_EXTENSION_METADATA) continue;
    gb_ffi_metadata *metadata = ((gb_ffi_metadata_extension *)e)->metadata;
    metadata->version.major_version = frame->api == NULL ? 0 : frame->api->version.major_version;
    metadata->version.minor_version = frame->api == NULL ? 1 : frame->api->version.minor_version;
    metadata->traits = 0;
    return 1;
  }
  return 0;
}

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
  if (answer_metadata(frame)) return NULL;
  if (frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  if (frame->args.size < 1 || frame->rets.size != 1)
    return fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: all-reduce: wrong number of operands");

  gb_ffi_buffer *x = frame->args.values[0], *y = frame->rets.values[0];
  int64_t count = 1;
  for (int64_t i = 0; i < x->rank; i++) count *= x->dims[i];
  size_t size = size_of(x->dtype);
  if (size == 0)
    return fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: all-reduce: unsupported element type");
  if (x->data != y->data) memcpy(y->data, x->data, size * (size_t)count);

  char error[512];
  if (transport(y->data, count, x->dtype, error, sizeof error) != 0) return fail(frame, GB_FFI_INTERNAL, error);
  return NULL;
}

void *gb_all_reduce_handler(gb_transport t) {
  transport = t;
  return (void *)all_reduce;
}
