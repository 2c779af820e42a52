// Products that are gradients of weights, with the update of the weights by Adam. Each tile of the
// product updates its weights while it is in the cache, so the gradient is never in memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "product.h"

typedef gb_dnn_product_form form;

// kernel is an update that is to be computed in parts of the longer side of the gradient.
typedef struct {
  const form *form;
  const float *a, *b;
  const gb_dnn_adam_update *update;
  int parts;
} kernel;

// The size of a tile.
enum { TILE_ROWS = 32, TILE_COLUMNS = 2048 };

// desks have the memory of the parts.
static struct {
  float *memory;
  size_t size;
} desks[GB_DNN_MOST_PARTS];

// memory_of returns a part's memory of at least `count` elements, or NULL.
static float *memory_of(int part, int64_t count) {
  size_t size = ((size_t)count * sizeof(float) + 63) & ~(size_t)63;
  if (size > desks[part].size) {
    free(desks[part].memory);
    desks[part].memory = aligned_alloc(64, size);
    desks[part].size = desks[part].memory == NULL ? 0 : size;
  }
  return desks[part].memory;
}

// area is a part of the gradient.
typedef struct {
  int64_t top, bottom, left, right;
} area;

// update_tile computes the gradient in an area and updates its weights. The columns of b from
// `left` on are in `b`, with rows that are `apart` elements apart.
static int update_tile(const kernel *k, area at, const float *b, int64_t apart, float *tile) {
  const form *f = k->form;
  const float *a = k->a + at.top * (f->transposed_a ? 1 : f->k);
  int64_t width = at.right - at.left;
  if (gb_dnn.sgemm(f->transposed_a ? 'T' : 'N', f->transposed_b ? 'T' : 'N', at.bottom - at.top, width, f->k, 1, a,
                   f->transposed_a ? f->m : f->k, b, apart, 0, tile, width))
    return 1;
  for (int64_t row = at.top; row < at.bottom; row++)
    gb_dnn_adam_row(k->update, row * f->n + at.left, tile + (row - at.top) * width, width);
  return 0;
}

// update_columns is update_tile for all rows of an area with the columns of a tile.
static int update_columns(const kernel *k, area at, float *tile, float *copy) {
  const form *f = k->form;
  int64_t width = at.right - at.left, apart = f->transposed_b ? f->k : width + GB_DNN_SPARE;
  const float *b = f->transposed_b ? k->b + at.left * f->k : copy;
  for (int64_t i = 0; i < f->k && !f->transposed_b; i++) memcpy(copy + i * apart, k->b + i * f->n + at.left, (size_t)width * sizeof *b);
  int failed = 0;
  for (area rows = at; rows.top < at.bottom && !failed; rows.top = rows.bottom) {
    rows.bottom = gb_dnn_smaller(rows.top + TILE_ROWS, at.bottom);
    failed = update_tile(k, rows, b, apart, tile);
  }
  return failed;
}

static int compute(const void *of, int part) {
  const kernel *k = of;
  const form *f = k->form;
  int64_t length = f->m >= f->n ? f->m : f->n, begin = gb_dnn_part(length, k->parts, part), end = gb_dnn_part(length, k->parts, part + 1);
  area all = {0, f->m, begin, end};
  if (f->m >= f->n) all = (area){begin, end, 0, f->n};
  float *tile = memory_of(part, TILE_ROWS * TILE_COLUMNS + f->k * (TILE_COLUMNS + GB_DNN_SPARE));
  int failed = tile == NULL;
  for (area columns = all; columns.left < all.right && !failed; columns.left = columns.right) {
    columns.right = gb_dnn_smaller(columns.left + TILE_COLUMNS, all.right);
    failed = update_columns(k, columns, tile, tile + TILE_ROWS * TILE_COLUMNS);
  }
  return failed;
}

int gb_dnn_trained_product(const int64_t *numbers, int64_t length, const float *a, const float *b,
                           const gb_dnn_adam_update *update, char *error, size_t error_size) {
  const form *f = (const form *)numbers;
  if (length != sizeof *f / sizeof(int64_t) || f->pairs != 1 || f->alone || f->m * f->n != update->count) {
    snprintf(error, error_size, "a gradient of another form");
    return 1;
  }
  kernel k = {f, a, b, update, 0};
  gb_dnn_lock();
  k.parts = gb_dnn_parts(f->m >= f->n ? f->m : f->n);
  int failed = gb_dnn_together(compute, &k, k.parts);
  gb_dnn_unlock();
  if (failed) snprintf(error, error_size, "oneDNN can't multiply these matrices");
  return failed;
}
