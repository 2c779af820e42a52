// The XLA custom calls that run kernels of another library.
#include "kernels.h"

#include <string.h>

#include "frame.h"
#include "trace.h"

static gb_kernel convolution_kernel, product_kernel, columns_kernel;  // A process has only one library.
static gb_adam adam_kernel;
static gb_trained_product trained_kernel;

// run takes (a, b, form), and perhaps values that only order it after what computes them. The kind
// is that of the trace.
static gb_ffi_error *run(gb_kernel kernel, int kind, const gb_ffi_call_frame *frame) {
  if (gb_frame_prepares(frame)) return NULL;
  if (frame->args.size < 3 || frame->rets.size != 1)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: kernel: wrong number of operands");
  gb_ffi_buffer *a = frame->args.values[0], *b = frame->args.values[1], *form = frame->args.values[2];
  gb_ffi_buffer *out = frame->rets.values[0];
  if (a->dtype != GB_FFI_F32 || b->dtype != GB_FFI_F32 || out->dtype != GB_FFI_F32 || form->dtype != GB_FFI_S64)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: kernel: wrong element types");
  int64_t length = gb_count(form), began = gb_trace_begin();
  char error[512] = "gonbatch: ";
  size_t used = strlen(error);
  if (kernel(form->data, length, a->data, b->data, out->data, error + used, sizeof error - used) != 0)
    return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  gb_trace_end(began, kind, form->data, length);
  return NULL;
}

gb_ffi_error *gb_convolution_call(gb_ffi_call_frame *frame) { return run(convolution_kernel, GB_TRACE_CONVOLUTION, frame); }
gb_ffi_error *gb_product_call(gb_ffi_call_frame *frame) { return run(product_kernel, GB_TRACE_PRODUCT, frame); }
gb_ffi_error *gb_columns_call(gb_ffi_call_frame *frame) { return run(columns_kernel, GB_TRACE_COLUMNS, frame); }

enum { ADAM_STATE = 3, ADAM_ARRAYS = 4, ADAM_SCALARS = 10 };

// is_array reports whether a buffer has so many elements of float32.
static int is_array(const gb_ffi_buffer *b, int64_t count) { return b->dtype == GB_FFI_F32 && gb_count(b) == count; }

// A call updates a weight, or a part of it. Its operands are the weight, the two moments, the
// element where the part begins, if it is one, the gradient or its factors, and the scalars. What
// follows only orders it. Its results are the new weight and moments.

// after_state returns the operands after the state.
static gb_ffi_buffer *const *after_state(const gb_ffi_call_frame *frame, int is_part) {
  return (gb_ffi_buffer *const *)frame->args.values + ADAM_STATE + is_part;
}

// read_weight finds the weights that an update changes. A part that would be outside the whole is
// moved inside, as StableHLO defines it. It returns 0 if shapes and types are right.
static int read_weight(const gb_ffi_call_frame *frame, int is_part, gb_adam_update *u) {
  const gb_ffi_buffer *in = frame->args.values[0], *out = frame->rets.values[0], *at = frame->args.values[ADAM_STATE];
  int64_t all = gb_count(in), begin = 0;
  if (!is_array(in, all) || !is_array(out, all) || (is_part ? all < u->count : all != u->count)) return 1;
  if (is_part) {
    if (at->dtype != GB_FFI_S64 || gb_count(at) != 1) return 1;
    begin = *(const int64_t *)at->data;
    if (begin > all - u->count) begin = all - u->count;
    if (begin < 0) begin = 0;
    // XLA gives both the same memory.
    if (in->data != out->data) memcpy(out->data, in->data, (size_t)all * sizeof(float));
  }
  u->weight = (const float *)(is_part ? out->data : in->data) + begin;
  u->new_weight = (float *)out->data + begin;
  return 0;
}

// read_update reads an update, without its gradient, which has so many operands. It returns 0 if
// shapes and types are right.
static int read_update(const gb_ffi_call_frame *frame, int is_part, int gradients, gb_adam_update *u) {
  gb_ffi_buffer *const *in = (gb_ffi_buffer *const *)frame->args.values, *const *out = (gb_ffi_buffer *const *)frame->rets.values;
  gb_ffi_buffer *const *scalars = after_state(frame, is_part) + gradients;
  int64_t count = gb_count(in[1]);
  for (int i = 1; i < ADAM_STATE; i++)
    if (!is_array(in[i], count) || !is_array(out[i], count)) return 1;
  float s[ADAM_SCALARS];
  for (int i = 0; i < ADAM_SCALARS; i++) {
    if (!is_array(scalars[i], 1)) return 1;
    s[i] = *(const float *)scalars[i]->data;
  }
  *u = (gb_adam_update){count, NULL, in[1]->data, in[2]->data, NULL, NULL, out[1]->data, out[2]->data,
                        s[0],  s[1], s[2],        s[3],        s[4], s[5], s[6],         s[7],        s[8], s[9]};
  return read_weight(frame, is_part, u);
}

// has_operands reports whether a call has the operands of an update and its results.
static int has_operands(const gb_ffi_call_frame *frame, int is_part, int gradients) {
  return frame->args.size >= ADAM_STATE + is_part + gradients + ADAM_SCALARS && frame->rets.size == ADAM_STATE;
}

static gb_ffi_error *run_adam(gb_ffi_call_frame *frame, int is_part) {
  if (gb_frame_prepares(frame)) return NULL;
  if (!has_operands(frame, is_part, 1))
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: adam: wrong number of operands or results");
  const gb_ffi_buffer *gradient = *after_state(frame, is_part);
  gb_adam_update update;
  int64_t began = gb_trace_begin();
  if (read_update(frame, is_part, 1, &update) || !is_array(gradient, update.count))
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: adam: wrong shapes or element types");
  update.gradient = gradient->data;
  adam_kernel(&update);
  gb_trace_end(began, GB_TRACE_ADAM, &update.count, 1);
  return NULL;
}

enum { PRODUCT_OPERANDS = 3 };  // a, b and the form.

static gb_ffi_error *run_trained_product(gb_ffi_call_frame *frame, int is_part) {
  if (gb_frame_prepares(frame)) return NULL;
  if (!has_operands(frame, is_part, PRODUCT_OPERANDS))
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: trained product: wrong number of operands or results");
  gb_ffi_buffer *const *product = after_state(frame, is_part), *a = product[0], *b = product[1], *form = product[2];
  gb_adam_update update;
  int64_t length = gb_count(form), began = gb_trace_begin();
  if (read_update(frame, is_part, PRODUCT_OPERANDS, &update) || a->dtype != GB_FFI_F32 || b->dtype != GB_FFI_F32 || form->dtype != GB_FFI_S64)
    return gb_frame_fail(frame, GB_FFI_INVALID_ARGUMENT, "gonbatch: trained product: wrong shapes or element types");
  char error[512] = "gonbatch: ";
  size_t used = strlen(error);
  if (trained_kernel(form->data, length, a->data, b->data, &update, error + used, sizeof error - used) != 0)
    return gb_frame_fail(frame, GB_FFI_INTERNAL, error);
  gb_trace_end(began, GB_TRACE_TRAINED, form->data, length);
  return NULL;
}

gb_ffi_error *gb_adam_call(gb_ffi_call_frame *frame) { return run_adam(frame, 0); }
gb_ffi_error *gb_adam_part_call(gb_ffi_call_frame *frame) { return run_adam(frame, 1); }
gb_ffi_error *gb_trained_product_call(gb_ffi_call_frame *frame) { return run_trained_product(frame, 0); }
gb_ffi_error *gb_trained_product_part_call(gb_ffi_call_frame *frame) { return run_trained_product(frame, 1); }

void gb_set_kernels(gb_kernel convolution, gb_kernel product, gb_kernel columns, gb_adam adam, gb_trained_product trained) {
  convolution_kernel = convolution;
  product_kernel = product;
  columns_kernel = columns;
  adam_kernel = adam;
  trained_kernel = trained;
}

int gb_convolution_is_fast(const int64_t *form, int64_t length) {
  char error[512];
  return convolution_kernel(form, length, NULL, NULL, NULL, error, sizeof error) == 0;
}
