#ifndef GONBATCH_PJRT_KERNELS_H
#define GONBATCH_PJRT_KERNELS_H

#include "abi.h"

// gb_kernel computes `out` from a and b, all float32. The form is the numbers that describe what to
// compute: those that convolution.go and product.go write. It returns 0, or non-zero and a
// zero-terminated text of at most error_size bytes in `error`. If `out` is NULL, so are a and b,
// and it returns 0 if it can compute this form fast.
typedef int (*gb_kernel)(const int64_t *form, int64_t length, const float *a, const float *b, float *out, char *error,
                         size_t error_size);

// gb_adam_update is an update of Adam, or of AdamW, with weights, moments and a gradient of `count`
// elements each:
//
//   g = scale * gradient
//   new_moment1 = keep1 * moment1 + add1 * g
//   new_moment2 = keep2 * moment2 + add2 * g^2
//   new_weight = weight - (rate * debias1 * new_moment1 / (sqrt(debias2 * new_moment2) + epsilon) + rate * decay * weight)
//
// The new values may be in the memory of the old ones. onednn/library.h has the same struct.
typedef struct {
  int64_t count;
  const float *weight, *moment1, *moment2, *gradient;
  float *new_weight, *new_moment1, *new_moment2;
  float keep1, add1, debias1, keep2, add2, debias2, epsilon, rate, decay, scale;
} gb_adam_update;

typedef void (*gb_adam)(const gb_adam_update *update);

// gb_trained_product is an update whose gradient is the product of a and b, of the form of a
// product kernel. The update's gradient isn't used.
typedef int (*gb_trained_product)(const int64_t *form, int64_t length, const float *a, const float *b,
                                  const gb_adam_update *update, char *error, size_t error_size);

// gb_set_kernels sets the kernels that the handlers of custom calls run. Some may be NULL.
void gb_set_kernels(gb_kernel convolution, gb_kernel product, gb_kernel columns, gb_adam adam, gb_trained_product trained);

// The handlers of XLA's custom calls that run a kernel, for (a, b, form).
gb_ffi_error *gb_convolution_call(gb_ffi_call_frame *frame);
gb_ffi_error *gb_product_call(gb_ffi_call_frame *frame);
gb_ffi_error *gb_columns_call(gb_ffi_call_frame *frame);

// The handlers of the custom calls that update a variable. They take weight, moment1, moment2, the
// gradient, or its factors a and b and the form, the ten scalars in the order of the struct, and
// perhaps values that only order them. They return the three new values.
gb_ffi_error *gb_adam_call(gb_ffi_call_frame *frame);
gb_ffi_error *gb_trained_product_call(gb_ffi_call_frame *frame);

// Those that update a part of a variable take the whole weight, moment1 and moment2 of the part,
// the element where the part begins (int64), and the other operands. They return the whole weight
// and the moments of the part. The weight has the same memory before and after.
gb_ffi_error *gb_adam_part_call(gb_ffi_call_frame *frame);
gb_ffi_error *gb_trained_product_part_call(gb_ffi_call_frame *frame);

// gb_convolution_is_fast reports whether the kernel can compute a convolution fast.
int gb_convolution_is_fast(const int64_t *form, int64_t length);

#endif
