// Products of matrices.
#include <stdio.h>

#include "library.h"

// form describes the product of an m x k and a k x n matrix, or of several pairs of them. It must
// agree with pjrt/product.go.
typedef struct {
  int64_t pairs, m, n, k;
  int64_t transposed_a, transposed_b;  // In memory: k x m, n x k.
  int64_t alone;                       // As in a convolution.
} form;

// kernel is a product that is to be computed in parts: of the longer side of the result, or of the
// pairs.
typedef struct {
  const form *form;
  const float *a, *b;
  float *out;
  int parts;
} kernel;

// multiply computes the rows of one pair's product, from `top` to `bottom`, and the columns from
// `left` to `right`.
static int multiply(const kernel *k, int64_t pair, int64_t top, int64_t bottom, int64_t left, int64_t right) {
  const form *f = k->form;
  const float *a = k->a + pair * f->m * f->k + top * (f->transposed_a ? 1 : f->k);
  const float *b = k->b + pair * f->k * f->n + left * (f->transposed_b ? f->k : 1);
  float *out = k->out + pair * f->m * f->n + top * f->n + left;
  return gb_dnn.sgemm(f->transposed_a ? 'T' : 'N', f->transposed_b ? 'T' : 'N', bottom - top, right - left, f->k, 1, a,
                      f->transposed_a ? f->m : f->k, b, f->transposed_b ? f->k : f->n, 0, out, f->n);
}

// sides cuts the longer side of each pair's result.
static int sides(const void *of, int part) {
  const kernel *k = of;
  const form *f = k->form;
  int tall = f->m >= f->n, failed = 0;
  int64_t length = tall ? f->m : f->n;
  int64_t begin = gb_dnn_part(length, k->parts, part), end = gb_dnn_part(length, k->parts, part + 1);
  for (int64_t i = 0; i < f->pairs && !failed; i++)
    failed = tall ? multiply(k, i, begin, end, 0, f->n) : multiply(k, i, 0, f->m, begin, end);
  return failed;
}

// pairs divides the pairs among the parts.
static int pairs(const void *of, int part) {
  const kernel *k = of;
  int failed = 0;
  int64_t end = gb_dnn_part(k->form->pairs, k->parts, part + 1);
  for (int64_t i = gb_dnn_part(k->form->pairs, k->parts, part); i < end && !failed; i++)
    failed = multiply(k, i, 0, k->form->m, 0, k->form->n);
  return failed;
}

static int compute_alone(kernel k) {
  k.parts = 1;
  gb_dnn_alone();
  return pairs(&k, 0);
}

static int compute(kernel k) {
  const form *f = k.form;
  k.parts = gb_dnn_parts(f->pairs);
  if (k.parts > 1) return gb_dnn_together(pairs, &k, k.parts);
  k.parts = gb_dnn_parts(f->m >= f->n ? f->m : f->n);
  return gb_dnn_together(sides, &k, k.parts);
}

static int compute_together(kernel k) {
  gb_dnn_lock();
  int failed = compute(k);
  gb_dnn_unlock();
  return failed;
}

int gb_dnn_product(const int64_t *numbers, int64_t length, const float *a, const float *b, float *out, char *error,
                   size_t error_size) {
  if (length != sizeof(form) / sizeof(int64_t)) {
    snprintf(error, error_size, "a product of %lld numbers, not %zu", (long long)length, sizeof(form) / sizeof(int64_t));
    return 1;
  }
  if (out == NULL) return 0;
  kernel k = {(const form *)numbers, a, b, out, 0};
  int failed = k.form->alone ? compute_alone(k) : compute_together(k);
  if (failed) snprintf(error, error_size, "oneDNN can't multiply these matrices");
  return failed;
}
