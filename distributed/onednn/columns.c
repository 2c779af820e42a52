// Sums over the rows of a matrix, such as the gradient of a layer's biases.
#if !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include <stdio.h>

#include "library.h"
#include "wide.h"

// form must agree with pjrt/columns.go.
typedef struct {
  int64_t rows, columns;
} form;

typedef struct {
  const form *form;
  const float *x;
  float *out;
  int parts;
} kernel;

// A sum over many rows is the sum of those over ROWS rows: so its rounding error grows with the
// square root of the number of rows, at most. WIDTH sums stay in the first cache.
enum { ROWS = 128, WIDTH = 1024 };

// add adds up to ROWS rows of up to WIDTH columns to the sums. The rows are `apart` elements apart.
GB_INLINE void add_inline(gb_roots unused, const float *x, int64_t rows, int64_t width, int64_t apart, float *sums) {
  (void)unused;
  float part[WIDTH];
  for (int64_t j = 0; j < width; j++) part[j] = x[j];
  for (int64_t i = 1; i < rows; i++) {
    const float *row = x + i * apart;
    for (int64_t j = 0; j < width; j++) part[j] += row[j];
  }
  for (int64_t j = 0; j < width; j++) sums[j] += part[j];
}

GB_WIDE(add, (const float *x, int64_t rows, int64_t width, int64_t apart, float *sums), x, rows, width, apart, sums)

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int compute(const void *of, int part) {
  const kernel *k = of;
  const form *f = k->form;
  int64_t end = gb_dnn_part(f->columns, k->parts, part + 1);
  for (int64_t left = gb_dnn_part(f->columns, k->parts, part), width; left < end; left += width) {
    width = smaller(WIDTH, end - left);
    float *sums = k->out + left;
    for (int64_t j = 0; j < width; j++) sums[j] = 0;
    for (int64_t top = 0; top < f->rows; top += ROWS)
      add(k->x + top * f->columns + left, smaller(ROWS, f->rows - top), width, f->columns, sums);
  }
  return 0;
}

int gb_dnn_columns(const int64_t *numbers, int64_t length, const float *x, const float *unused, float *out, char *error,
                   size_t error_size) {
  (void)unused;
  if (length != sizeof(form) / sizeof(int64_t)) {
    snprintf(error, error_size, "sums of %lld numbers, not %zu", (long long)length, sizeof(form) / sizeof(int64_t));
    return 1;
  }
  if (out == NULL) return 0;
  kernel k = {(const form *)numbers, x, out, 0};
  gb_dnn_lock();
  k.parts = gb_dnn_own_parts(k.form->columns);
  gb_dnn_together(compute, &k, k.parts);
  gb_dnn_unlock();
  return 0;
}
