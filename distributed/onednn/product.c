// Products of matrices.
#include <stdio.h>

#include "library.h"

// form describes the product of an m x k and a k x n matrix, or of several pairs of them. It must
// agree with pjrt/product.go.
typedef struct {
  int64_t pairs, m, n, k;
  int64_t transposed_a, transposed_b;  // In memory: k x m, n x k.
} form;

static int multiply(const form *f, const float *a, const float *b, float *out) {
  int failed = 0;
  for (int64_t i = 0; i < f->pairs && !failed; i++)
    failed = gb_dnn.sgemm(f->transposed_a ? 'T' : 'N', f->transposed_b ? 'T' : 'N', f->m, f->n, f->k, 1,
                          a + i * f->m * f->k, f->transposed_a ? f->m : f->k, b + i * f->k * f->n,
                          f->transposed_b ? f->k : f->n, 0, out + i * f->m * f->n, f->n);
  return failed;
}

int gb_dnn_product(const int64_t *numbers, int64_t length, const float *a, const float *b, float *out, char *error,
                   size_t error_size) {
  if (length != sizeof(form) / sizeof(int64_t)) {
    snprintf(error, error_size, "a product of %lld numbers, not %zu", (long long)length, sizeof(form) / sizeof(int64_t));
    return 1;
  }
  if (out == NULL) return 0;
  gb_dnn_lock();
  int failed = multiply((const form *)numbers, a, b, out);
  gb_dnn_unlock();
  if (failed) snprintf(error, error_size, "oneDNN can't multiply these matrices");
  return failed;
}
