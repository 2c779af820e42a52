// The XLA custom calls that run kernels of another library.
#include "kernels.h"

#include <string.h>

#include "frame.h"
#include "trace.h"

static gb_kernel convolution_kernel, product_kernel, columns_kernel;  // A process has only one library.
static gb_adam adam_kernel;

// count_of returns the number of elements of a buffer.
static int64_t count_of(const gb_ffi_buffer *b) {
  int64_t count = 1;
  for (int64_t i = 0; i < b->rank; i++) count *= b->dims[i];
  return count;
}

// run takes (a, b, form), and perhaps values that only order it after what computes them. The kind
// is that of the trace.
static gb_ffi_error *run(gb_kernel kernel, int kind, const gb_ffi_call_frame *frame) {
  if (gb_frame_metadata(frame)) return NULL;
  if (frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  if (frame->args.size < 3 || frame->rets.size != 1)
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

static gb_ffi_error *columns(gb_ffi_call_frame *frame) { return run(columns_kernel, GB_TRACE_COLUMNS, frame); }

enum { ADAM_ARRAYS = 4, ADAM_SCALARS = 10, ADAM_RESULTS = 3 };

// is_array reports whether a buffer has so many elements of float32.
static int is_array(const gb_ffi_buffer *b, int64_t count) { return b->dtype == GB_FFI_F32 && count_of(b) == count; }

static int is_update(const gb_ffi_call_frame *frame, int64_t count) {
  for (int i = 0; i < ADAM_ARRAYS + ADAM_SCALARS; i++)
    if (!is_array(frame->args.values[i], i < ADAM_ARRAYS ? count : 1)) return 0;
  for (int i = 0; i < ADAM_RESULTS; i++)
    if (!is_array(frame->rets.values[i], count)) return 0;
  return 1;
}

static gb_ffi_error *adam(gb_ffi_call_frame *frame) {
  if (gb_frame_metadata(frame) || frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  if (frame->args.size != ADAM_ARRAYS + ADAM_SCALARS || frame->rets.size != ADAM_RESULTS)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: adam: wrong number of operands or results");
  gb_ffi_buffer *const *in = (gb_ffi_buffer *const *)frame->args.values, *const *out = (gb_ffi_buffer *const *)frame->rets.values;
  int64_t count = count_of(in[0]), began = gb_trace_begin();
  if (!is_update(frame, count)) return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: adam: wrong shapes or element types");
  float scalars[ADAM_SCALARS];
  for (int i = 0; i < ADAM_SCALARS; i++) scalars[i] = *(const float *)in[ADAM_ARRAYS + i]->data;
  adam_kernel(&(gb_adam_update){count, in[0]->data, in[1]->data, in[2]->data, in[3]->data, out[0]->data, out[1]->data, out[2]->data, scalars[0],
                                scalars[1], scalars[2], scalars[3], scalars[4], scalars[5], scalars[6], scalars[7], scalars[8], scalars[9]});
  gb_trace_end(began, GB_TRACE_ADAM, &count, 1);
  return NULL;
}

void *gb_convolution_handler(gb_kernel kernel) {
  convolution_kernel = kernel;
  return (void *)convolution;
}

void *gb_product_handler(gb_kernel kernel) {
  product_kernel = kernel;
  return (void *)product;
}

void *gb_columns_handler(gb_kernel kernel) {
  columns_kernel = kernel;
  return (void *)columns;
}

void *gb_adam_handler(gb_adam kernel) {
  adam_kernel = kernel;
  return (void *)adam;
}

int gb_convolution_is_fast(const int64_t *form, int64_t length) {
  char error[512];
  return convolution_kernel(form, length, NULL, NULL, NULL, error, sizeof error) == 0;
}
