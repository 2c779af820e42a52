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

// gb_convolution_is_fast reports whether the kernel can compute a convolution fast.
int gb_convolution_is_fast(const int64_t *form, int64_t length);

#endif
