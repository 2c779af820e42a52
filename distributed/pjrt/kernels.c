// The XLA custom calls that run kernels of another library.
#include "kernels.h"

#include <string.h>

#include "frame.h"
#include "trace.h"

static gb_kernel convolution_kernel, product_kernel;  // A process has only one library.

// count_of returns the number of elements of a buffer.
static int64_t count_of(const gb_ffi_buffer *b) {
  int64_t count = 1;
  for (int64_t i = 0; i < b->rank; i++) count *= b->dims[i];
  return count;
}

// run takes (a, b, form). The kind is that of the trace.
static gb_ffi_error *run(gb_kernel kernel, int kind, const gb_ffi_call_frame *frame) {
  if (gb_frame_metadata(frame)) return NULL;
  if (frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  if (frame->args.size != 3 || frame->rets.size != 1)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: kernel: wrong number of operands");
  gb_ffi_buffer *a = frame->args.values[0], *b = frame->args.values[1], *form = frame->args.values[2];
  gb_ffi_buffer *out = frame->rets.values[0];
  if (a->dtype != GB_FFI_F32 || b->dtype != GB_FFI_F32 || out->dtype != GB_FFI_F32 || form->dtype != GB_FFI_S64)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: kernel: wrong element types");
  int64_t length = count_of(form), began = gb_trace_begin();
  char error[512] = "gonbatch: ";
  size_t used = strlen(error);
  if (kernel(form->data, length, a->data, b->data, out->data, error + used, sizeof error - used) != 0)
    return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  gb_trace_end(began, kind, form->data, length);
  return NULL;
}

static gb_ffi_error *convolution(gb_ffi_call_frame *frame) { return run(convolution_kernel, GB_TRACE_CONVOLUTION, frame); }

static gb_ffi_error *product(gb_ffi_call_frame *frame) { return run(product_kernel, GB_TRACE_PRODUCT, frame); }

void *gb_convolution_handler(gb_kernel kernel) {
  convolution_kernel = kernel;
  return (void *)convolution;
}

void *gb_product_handler(gb_kernel kernel) {
  product_kernel = kernel;
  return (void *)product;
}

int gb_convolution_is_fast(const int64_t *form, int64_t length) {
  char error[512];
  return convolution_kernel(form, length, NULL, NULL, NULL, error, sizeof error) == 0;
}
