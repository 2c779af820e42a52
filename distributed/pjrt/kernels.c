// The XLA custom calls that run kernels of another library.
#include "kernels.h"

#include <string.h>

#include "frame.h"
#include "trace.h"

static gb_kernel convolution_kernel, product_kernel, columns_kernel;  // A process has only one library.
static gb_adam adam_kernel;
static gb_trained_product trained_kernel;

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

enum { ADAM_STATE = 3, ADAM_ARRAYS = 4, ADAM_SCALARS = 10 };

// is_array reports whether a buffer has so many elements of float32.
static int is_array(const gb_ffi_buffer *b, int64_t count) { return b->dtype == GB_FFI_F32 && count_of(b) == count; }

// weight_of finds the weights of an update, of which a part may be this rank's: the operand after
// the state is then the element where the part begins. It returns 0 if their shapes and types are
// right.
static int weight_of(const gb_ffi_call_frame *frame, int is_part, int64_t count, const float **weight, float **new_weight) {
  const gb_ffi_buffer *in = frame->args.values[0], *out = frame->rets.values[0], *at = frame->args.values[ADAM_STATE];
  int64_t all = count_of(in), begin = 0;
  if (is_part && (at->dtype != GB_FFI_S64 || count_of(at) != 1 || in->data != out->data)) return 1;
  if (is_part) begin = *(const int64_t *)at->data;
  if (!is_array(in, all) || !is_array(out, all) || begin < 0 || begin > all - count || (!is_part && all != count)) return 1;
  *weight = (const float *)in->data + begin;
  *new_weight = (float *)out->data + begin;
  return 0;
}

// read_update reads an update, without its gradient. The weight and its moments are the first
// operands and the results; the scalars are the operands from `scalars` on. It returns 0 if their
// shapes and types are right.
static int read_update(const gb_ffi_call_frame *frame, int is_part, int scalars, gb_adam_update *u) {
  gb_ffi_buffer *const *in = (gb_ffi_buffer *const *)frame->args.values, *const *out = (gb_ffi_buffer *const *)frame->rets.values;
  int64_t count = count_of(in[1]);
  for (int i = 1; i < ADAM_STATE; i++)
    if (!is_array(in[i], count) || !is_array(out[i], count)) return 1;
  const float *weight;
  float *new_weight;
  if (weight_of(frame, is_part, count, &weight, &new_weight)) return 1;
  float s[ADAM_SCALARS];
  for (int i = 0; i < ADAM_SCALARS; i++) {
    if (!is_array(in[scalars + i], 1)) return 1;
    s[i] = *(const float *)in[scalars + i]->data;
  }
  *u = (gb_adam_update){count, weight, in[1]->data, in[2]->data, NULL, new_weight, out[1]->data, out[2]->data,
                        s[0],  s[1],        s[2],        s[3],        s[4], s[5],         s[6],         s[7],        s[8], s[9]};
  return 0;
}

static gb_ffi_error *run_adam(gb_ffi_call_frame *frame, int is_part) {
  if (gb_frame_metadata(frame) || frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  const int scalars = ADAM_ARRAYS + is_part;
  if (frame->args.size < scalars + ADAM_SCALARS || frame->rets.size != ADAM_STATE)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: adam: wrong number of operands or results");
  const gb_ffi_buffer *gradient = frame->args.values[ADAM_STATE + is_part];
  gb_adam_update update;
  int64_t began = gb_trace_begin();
  if (read_update(frame, is_part, scalars, &update) || !is_array(gradient, update.count))
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: adam: wrong shapes or element types");
  update.gradient = gradient->data;
  adam_kernel(&update);
  gb_trace_end(began, GB_TRACE_ADAM, &update.count, 1);
  return NULL;
}

enum { PRODUCT_OPERANDS = 3 };  // a, b and the form.

static gb_ffi_error *run_trained_product(gb_ffi_call_frame *frame, int is_part) {
  if (gb_frame_metadata(frame) || frame->stage != GB_FFI_STAGE_EXECUTE) return NULL;
  const int factors = ADAM_STATE + is_part, scalars = factors + PRODUCT_OPERANDS;
  if (frame->args.size < scalars + ADAM_SCALARS || frame->rets.size != ADAM_STATE)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: trained product: wrong number of operands or results");
  gb_ffi_buffer *a = frame->args.values[factors], *b = frame->args.values[factors + 1], *form = frame->args.values[factors + 2];
  gb_adam_update update;
  int64_t length = count_of(form), began = gb_trace_begin();
  if (read_update(frame, is_part, scalars, &update) || a->dtype != GB_FFI_F32 || b->dtype != GB_FFI_F32 || form->dtype != GB_FFI_S64)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: trained product: wrong shapes or element types");
  char error[512] = "gonbatch: ";
  size_t used = strlen(error);
  if (trained_kernel(form->data, length, a->data, b->data, &update, error + used, sizeof error - used) != 0)
    return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  gb_trace_end(began, GB_TRACE_TRAINED, form->data, length);
  return NULL;
}

static gb_ffi_error *adam(gb_ffi_call_frame *frame) { return run_adam(frame, 0); }
static gb_ffi_error *adam_part(gb_ffi_call_frame *frame) { return run_adam(frame, 1); }
static gb_ffi_error *trained_product(gb_ffi_call_frame *frame) { return run_trained_product(frame, 0); }
static gb_ffi_error *trained_product_part(gb_ffi_call_frame *frame) { return run_trained_product(frame, 1); }

void *gb_adam_part_handler(void) { return (void *)adam_part; }
void *gb_trained_product_part_handler(void) { return (void *)trained_product_part; }

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

void *gb_trained_product_handler(gb_trained_product kernel) {
  trained_kernel = kernel;
  return (void *)trained_product;
}

int gb_convolution_is_fast(const int64_t *form, int64_t length) {
  char error[512];
  return convolution_kernel(form, length, NULL, NULL, NULL, error, sizeof error) == 0;
}
