// What all handlers of XLA's custom calls have in common.
#include "frame.h"

#include "flight.h"

gb_ffi_error *gb_frame_fail(const gb_ffi_call_frame *frame, int code, const char *message) {
  char first[512];
  gb_flight_end(message, first, sizeof first);
  gb_ffi_error_create_args args = {.struct_size = sizeof args, .message = first, .code = code};
  return frame->api->error_create(&args);
}

// It returns the version that XLA has, because the handlers use only the part of the interface that
// has not changed since version 0.1.
int gb_frame_prepares(const gb_ffi_call_frame *frame) {
  for (gb_ffi_extension *e = frame->extension_start; e != NULL; e = e->next) {
    if (e->type != GB_FFI_EXTENSION_METADATA) continue;
    gb_ffi_metadata *metadata = ((gb_ffi_metadata_extension *)e)->metadata;
    metadata->version.major_version = frame->api == NULL ? 0 : frame->api->version.major_version;
    metadata->version.minor_version = frame->api == NULL ? 1 : frame->api->version.minor_version;
    metadata->traits = 0;
    return 1;
  }
  return frame->stage != GB_FFI_STAGE_EXECUTE;
}

int64_t gb_count(const gb_ffi_buffer *b) {
  int64_t count = 1;
  for (int64_t i = 0; i < b->rank; i++) count *= b->dims[i];
  return count;
}
