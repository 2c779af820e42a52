// Products of matrices.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "product.h"

typedef gb_dnn_product_form form;

// kernel is a product that is to be computed in parts: of the longer side of the result, or of the
// pairs.
typedef struct {
  const form *form;
  const float *a, *b;
  float *out;
  int parts;
} kernel;

// sgemm computes the terms of the result from `from` to `to`. Unless they are the first ones, it
// adds them to what is there.
static int sgemm(const kernel *k, int64_t m, int64_t n, int64_t from, int64_t to, const float *a, const float *b, int64_t ldb, float *out) {
  const form *f = k->form;
  a += from * (f->transposed_a ? f->m : 1);
  return gb_dnn.sgemm(f->transposed_a ? 'T' : 'N', f->transposed_b ? 'T' : 'N', m, n, to - from, 1, a, f->transposed_a ? f->m : f->k, b, ldb,
                      from == 0 ? 0 : 1, out, f->n);
}

// If b's rows are a multiple of LAP bytes apart, a block of b is copied before it is used: a column
// otherwise lies in few sets of the cache, and oneDNN, which reads a few columns at a time, reads
// most of b from memory several times. With MOST_ROWS rows of a or more, oneDNN copies b itself.
enum { LAP = 2048, BLOCK = 512, MOST_ROWS = 1024 };

static int collides(const form *f, int64_t rows) {
  return !f->transposed_b && f->n * (int64_t)sizeof(float) % LAP == 0 && rows < MOST_ROWS;
}

// blocks has memory for one block for each thread that computes.
static struct {
  float *memory;
  atomic_flag taken;
} blocks[2 * GB_DNN_MOST_PARTS];

// take_block returns a block that no other thread has, or -1 if there is no memory.
static int take_block(void) {
  int at = 0;
  while (at < 2 * GB_DNN_MOST_PARTS && atomic_flag_test_and_set(&blocks[at].taken)) at++;
  if (at == 2 * GB_DNN_MOST_PARTS) return -1;
  if (blocks[at].memory == NULL) blocks[at].memory = aligned_alloc(64, BLOCK * (BLOCK + GB_DNN_SPARE) * sizeof(float));
  if (blocks[at].memory != NULL) return at;
  atomic_flag_clear(&blocks[at].taken);
  return -1;
}

static int multiply_by_blocks(const kernel *k, int block, int64_t m, int64_t n, const float *a, const float *b, float *out) {
  const form *f = k->form;
  float *copy = blocks[block].memory;
  for (int64_t left = 0; left < n; left += BLOCK) {
    int64_t width = gb_dnn_smaller(BLOCK, n - left), apart = width + GB_DNN_SPARE;
    for (int64_t from = 0; from < f->k; from += BLOCK) {
      int64_t to = gb_dnn_smaller(from + BLOCK, f->k);
      for (int64_t i = from; i < to; i++) memcpy(copy + (i - from) * apart, b + i * f->n + left, (size_t)width * sizeof *b);
      if (sgemm(k, m, width, from, to, a, copy, apart, out + left)) return 1;
    }
  }
  return 0;
}

// multiply computes the rows of one pair's product, from `top` to `bottom`, and the columns from
// `left` to `right`.
static int multiply(const kernel *k, int64_t pair, int64_t top, int64_t bottom, int64_t left, int64_t right) {
  const form *f = k->form;
  const float *a = k->a + pair * f->m * f->k + top * (f->transposed_a ? 1 : f->k);
  const float *b = k->b + pair * f->k * f->n + left * (f->transposed_b ? f->k : 1);
  float *out = k->out + pair * f->m * f->n + top * f->n + left;
  int64_t m = bottom - top, n = right - left;
  int block = collides(f, m) ? take_block() : -1;
  if (block < 0) return sgemm(k, m, n, 0, f->k, a, b, f->transposed_b ? f->k : f->n, out);
  int failed = multiply_by_blocks(k, block, m, n, a, b, out);
  atomic_flag_clear(&blocks[block].taken);
  return failed;
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
