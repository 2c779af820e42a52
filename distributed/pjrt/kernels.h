#ifndef GONBATCH_PJRT_KERNELS_H
#define GONBATCH_PJRT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

// gb_kernel computes `out` from a and b, all float32. The form is the numbers that describe what to
// compute: those that convolution.go and product.go write. It returns 0, or non-zero and a
// zero-terminated text of at most error_size bytes in `error`. If `out` is NULL, so are a and b,
// and it returns 0 if it can compute this form fast.
typedef int (*gb_kernel)(const int64_t *form, int64_t length, const float *a, const float *b, float *out, char *error,
                         size_t error_size);

// The handlers of XLA's custom calls that run a kernel.
void *gb_convolution_handler(gb_kernel kernel);
void *gb_product_handler(gb_kernel kernel);
void *gb_columns_handler(gb_kernel kernel);

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

// gb_adam_handler returns the handler of the custom call that takes weight, moment1, moment2,
// gradient and the ten scalars, in the order of the struct, and returns the three new values.
void *gb_adam_handler(gb_adam adam);

// gb_trained_product is an update whose gradient is the product of a and b, of the form of a
// product kernel. The update's gradient isn't used.
typedef int (*gb_trained_product)(const int64_t *form, int64_t length, const float *a, const float *b,
                                  const gb_adam_update *update, char *error, size_t error_size);

// gb_trained_product_handler returns the handler of the custom call that takes weight, moment1,
// moment2, a, b, the form, the ten scalars, and perhaps values that only order it. It returns the
// three new values.
void *gb_trained_product_handler(gb_trained_product kernel);

// The handlers of the custom calls that update a part of a variable, by the kernels of those above.
// They take the whole weight, moment1 and moment2 of the part, the element where the part begins
// (int64), and the other operands. They return the whole weight and the moments of the part. The
// weight has the same memory before and after.
void *gb_adam_part_handler(void);
void *gb_trained_product_part_handler(void);

// gb_convolution_is_fast reports whether the kernel can compute a convolution fast.
int gb_convolution_is_fast(const int64_t *form, int64_t length);

#endif
