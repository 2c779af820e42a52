// Winograd's minimal algorithm F(2x2, 3x3): a tile of 4x4 pixels gives 2x2 pixels of a 3x3
// convolution with 16 products for each pair of channels, not 36. The tiles, the kernels and the
// results are transformed to 16 points each. At each point, the points of all tiles, a matrix, are
// multiplied by those of the kernels. Source: Lavin and Gray, Fast Algorithms for Convolutional
// Neural Networks, CVPR 2016 (https://arxiv.org/abs/1509.09308), section 4.1.
#if !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include <string.h>

#include "convolution.h"
#include "library.h"
#include "product.h"
#include "wide.h"

typedef gb_dnn_convolution_form form;

enum { KERNEL = 3, TILE = 4, RESULT = 2, POINTS = TILE * TILE, LANES = 16 };

// A tile's transform computes with so many channels at once.
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

// images is [batch, height, width, channels].
typedef struct {
  float *data;
  int64_t height, width, channels;
} images;

// points is a matrix for each point: [POINTS, rows, columns]. The rows, and the points, are a bit
// further apart than they must be, because the caches have few places for addresses that are a
// multiple of 2 KiB apart.
typedef struct {
  float *data;
  int64_t rows, columns;
} points;

static int64_t row_size(const points *p) { return p->columns + GB_DNN_SPARE; }

static int64_t point_size(const points *p) { return p->rows * row_size(p) + GB_DNN_SPARE; }

static float *row(const points *p, int point, int64_t row) { return p->data + point * point_size(p) + row * row_size(p); }

// kernel is a convolution and where its parts find their tiles. A tile's results, in the
// images `to`, begin at an even row and column; its pixels, in the images `from`, `before` ahead of
// that. For the gradient of the weights, `to` is the gradient of the results.
typedef struct {
  const form *form;
  images from, to;
  float *weights;
  int64_t before[2];
  points kernels;  // Or their gradient.
  float *memory;   // For the points of tiles.
  int parts;
  int64_t begin, end;  // The tiles to compute.
} kernel;

// A square has the addresses of the vectors that a transform reads or writes, by row and column.
typedef struct {
  float *at[TILE][TILE];
} square;

// A line transforms a row or a column.
typedef void line(const lanes *in, lanes *out);

GB_INLINE void image_line(const lanes *d, lanes *out) {
  out[0] = d[0] - d[2], out[1] = d[1] + d[2], out[2] = d[2] - d[1], out[3] = d[1] - d[3];
}

GB_INLINE void kernel_line(const lanes *g, lanes *out) {
  lanes ends = g[0] + g[2];
  out[0] = g[0], out[1] = (ends + g[1]) * 0.5f, out[2] = (ends - g[1]) * 0.5f, out[3] = g[2];
}

GB_INLINE void result_line(const lanes *m, lanes *out) { out[0] = m[0] + m[1] + m[2], out[1] = m[1] - m[2] - m[3]; }

// result_gradient_line is the transposition of result_line, and kernel_gradient_line that of
// kernel_line.
GB_INLINE void result_gradient_line(const lanes *v, lanes *out) {
  out[0] = v[0], out[1] = v[0] + v[1], out[2] = v[0] - v[1], out[3] = -v[1];
}

GB_INLINE void kernel_gradient_line(const lanes *u, lanes *out) {
  lanes middle = (u[1] + u[2]) * 0.5f;
  out[0] = u[0] + middle, out[1] = (u[1] - u[2]) * 0.5f, out[2] = middle + u[3];
}

// transform transforms the columns of a square of `size` vectors, and then its rows.
GB_INLINE void transform(int size, int new_size, line *line, const square *from, const square *to, int64_t channels) {
  for (int64_t c = 0; c < channels; c += LANES) {
    lanes columns[TILE][TILE], new_row[TILE];
    for (int j = 0; j < size; j++) {
      lanes column[TILE], new_column[TILE];
      for (int i = 0; i < size; i++) column[i] = *(const lanes *)(from->at[i][j] + c);
      line(column, new_column);
      for (int i = 0; i < new_size; i++) columns[i][j] = new_column[i];
    }
    for (int i = 0; i < new_size; i++) {
      line(columns[i], new_row);
      for (int j = 0; j < new_size; j++) *(lanes *)(to->at[i][j] + c) = new_row[j];
    }
  }
}

// points_of returns the addresses of the points of a row.
GB_INLINE square points_of(const points *p, int64_t at) {
  square s;
  for (int i = 0; i < POINTS; i++) s.at[i / TILE][i % TILE] = row(p, i, at);
  return s;
}

static int64_t tiles_along(int64_t pixels) { return (pixels + 1) / RESULT; }

// place is where a tile's results are.
typedef struct {
  int64_t image, row, column;
} place;

static place place_of(const kernel *k, int64_t tile) {
  int64_t rows = tiles_along(k->to.height), columns = tiles_along(k->to.width);
  return (place){tile / (rows * columns), tile / columns % rows * RESULT, tile % columns * RESULT};
}

// next returns the place of the next tile.
static place next(const kernel *k, place p) {
  if ((p.column += RESULT) < k->to.width) return p;
  p.column = 0;
  if ((p.row += RESULT) < k->to.height) return p;
  return (place){p.image + 1, 0, 0};
}

// MOST_CHANNELS is the largest number of channels.
enum { MOST_CHANNELS = 4096 };

// zeros are the pixels outside an image.
static const float zeros[MOST_CHANNELS];

// pixels_of returns the addresses of `size` rows and columns of pixels of an image. Those outside
// it are `outside`.
GB_INLINE square pixels_of(const images *of, int size, int64_t image, int64_t row, int64_t column, const float *outside) {
  square s;
  int64_t up = of->width * of->channels;
  float *first = of->data + (image * of->height + row) * up + column * of->channels;
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++) {
      int inside = row + i >= 0 && column + j >= 0 && row + i < of->height && column + j < of->width;
      s.at[i][j] = inside ? first + i * up + j * of->channels : (float *)outside;
    }
  return s;
}

// read_images transforms tiles from `begin` on to the rows of points.
GB_INLINE void read_images_inline(gb_roots unused, const kernel *k, int64_t begin, const points *to, int64_t first, int64_t end) {
  (void)unused;
  place p = place_of(k, begin + first);
  for (int64_t i = first; i < end; i++, p = next(k, p)) {
    square tile = pixels_of(&k->from, TILE, p.image, p.row - k->before[0], p.column - k->before[1], zeros), row = points_of(to, i);
    transform(TILE, TILE, image_line, &tile, &row, to->columns);
  }
}

GB_WIDE(read_images, (const kernel *k, int64_t begin, const points *to, int64_t first, int64_t end), k, begin, to, first, end)

// read_gradients transforms the gradients of tiles' results.
GB_INLINE void read_gradients_inline(gb_roots unused, const kernel *k, int64_t begin, const points *to, int64_t first, int64_t end) {
  (void)unused;
  place p = place_of(k, begin + first);
  for (int64_t i = first; i < end; i++, p = next(k, p)) {
    square results = pixels_of(&k->to, RESULT, p.image, p.row, p.column, zeros), row = points_of(to, i);
    transform(RESULT, TILE, result_gradient_line, &results, &row, to->columns);
  }
}

GB_WIDE(read_gradients, (const kernel *k, int64_t begin, const points *to, int64_t first, int64_t end), k, begin, to, first, end)

// write_results transforms the rows of points to the results of the tiles from `begin` on.
GB_INLINE void write_results_inline(gb_roots unused, const kernel *k, int64_t begin, const points *from) {
  (void)unused;
  float lost[MOST_CHANNELS];
  place p = place_of(k, begin);
  for (int64_t i = 0; i < from->rows; i++, p = next(k, p)) {
    square row = points_of(from, i), results = pixels_of(&k->to, RESULT, p.image, p.row, p.column, lost);
    transform(TILE, RESULT, result_line, &row, &results, from->columns);
  }
}

GB_WIDE(write_results, (const kernel *k, int64_t begin, const points *from), k, begin, from)

// taps_of returns the addresses of a row of the weights, [KERNEL, KERNEL, rows, columns].
GB_INLINE square taps_of(float *weights, int64_t rows, int64_t columns, int64_t row) {
  square s;
  for (int i = 0; i < KERNEL; i++)
    for (int j = 0; j < KERNEL; j++) s.at[i][j] = weights + ((i * KERNEL + j) * rows + row) * columns;
  return s;
}

// rotated returns the taps rotated by 180 degrees.
GB_INLINE square rotated(square s) {
  square r;
  for (int i = 0; i < KERNEL; i++)
    for (int j = 0; j < KERNEL; j++) r.at[i][j] = s.at[KERNEL - 1 - i][KERNEL - 1 - j];
  return r;
}

// copy_transposed copies the taps of LANES rows and columns, with the rows as columns.
GB_INLINE void copy_transposed(const square *from, int64_t apart, float *copy) {
  for (int tap = 0; tap < KERNEL * KERNEL; tap++, copy += LANES * LANES) {
    const float *block = from->at[tap / KERNEL][tap % KERNEL];
    for (int j = 0; j < LANES; j++)
      for (int i = 0; i < LANES; i++) copy[j * LANES + i] = block[i * apart + j];
  }
}

// is_transposed reports whether the rows of the weights are the columns of the kernels' points,
// whose rows are the channels that are added up.
static int is_transposed(const form *f) { return f->swapped != (f->op == GB_DNN_BACKWARD_DATA); }

GB_INLINE square oriented(const form *f, square taps) { return f->op == GB_DNN_BACKWARD_DATA ? rotated(taps) : taps; }

GB_INLINE void read_rows(const kernel *k, int64_t first, int64_t end) {
  const points *to = &k->kernels;
  for (int64_t i = first; i < end; i++) {
    square taps = oriented(k->form, taps_of(k->weights, to->rows, to->columns, i)), row = points_of(to, i);
    transform(KERNEL, TILE, kernel_line, &taps, &row, to->columns);
  }
}

// read_columns reads LANES columns of the weights.
GB_INLINE void read_columns(const kernel *k, int64_t first) {
  const points *to = &k->kernels;
  float copy[KERNEL * KERNEL * LANES * LANES];
  for (int64_t i = 0; i < to->columns; i += LANES) {
    square weights = taps_of(k->weights + first, to->columns, to->rows, i);
    copy_transposed(&weights, to->rows, copy);
    for (int j = 0; j < LANES; j++) {
      square taps = oriented(k->form, taps_of(copy, LANES, LANES, j)), row = points_of(&(points){to->data + i, to->rows, to->columns}, first + j);
      transform(KERNEL, TILE, kernel_line, &taps, &row, LANES);
    }
  }
}

// read_kernels transforms the kernels to rows of points, LANES at once.
GB_INLINE void read_kernels_inline(gb_roots unused, const kernel *k, int64_t first, int64_t end) {
  (void)unused;
  if (!is_transposed(k->form)) read_rows(k, first, end);
  for (int64_t i = first; i < end && is_transposed(k->form); i += LANES) read_columns(k, i);
}

GB_WIDE(read_kernels, (const kernel *k, int64_t first, int64_t end), k, first, end)

// write_kernels transforms rows of points to the gradient of the weights.
GB_INLINE void write_kernels_inline(gb_roots unused, const kernel *k, int64_t first, int64_t end) {
  (void)unused;
  const points *from = &k->kernels;
  for (int64_t i = first; i < end; i++) {
    square row = points_of(from, i), taps = taps_of(k->weights, from->rows, from->columns, i);
    transform(TILE, KERNEL, kernel_gradient_line, &row, &taps, from->columns);
  }
}

GB_WIDE(write_kernels, (const kernel *k, int64_t first, int64_t end), k, first, end)

// rows_of returns where a part of the kernels' rows begins: LANES rows stay together.
static int64_t rows_of(const kernel *k, int part) { return LANES * gb_dnn_part(k->kernels.rows / LANES, k->parts, part); }

static int transform_kernels(const void *of, int part) {
  const kernel *k = of;
  read_kernels(k, rows_of(k, part), rows_of(k, part + 1));
  return 0;
}

static int transform_gradient(const void *of, int part) {
  const kernel *k = of;
  write_kernels(k, rows_of(k, part), rows_of(k, part + 1));
  return 0;
}

// tiles_of returns the number of tiles of a convolution.
static int64_t tiles_of(const form *f) {
  if (f->op == GB_DNN_BACKWARD_DATA) return f->batch * tiles_along(f->height) * tiles_along(f->width);
  return f->batch * tiles_along(f->out_height) * tiles_along(f->out_width);
}

// The points of a block of tiles should stay in the L2 cache, but a product of few rows is slow.
enum { BLOCK_BYTES = 1 << 19, FEWEST_TILES = 128 };

// block_of returns the number of tiles of a block, if each part has blocks of its own.
static int64_t block_of(const form *f, int parts) {
  int64_t fitting = BLOCK_BYTES / ((f->in + f->out) * POINTS * (int64_t)sizeof(float)), all = (tiles_of(f) + parts - 1) / parts;
  return gb_dnn_smaller(fitting > FEWEST_TILES ? fitting : FEWEST_TILES, all);
}

static points points_at(float *memory, int64_t rows, int64_t columns) { return (points){memory, rows, columns}; }

static int64_t count(points p) { return POINTS * point_size(&p); }

// points_of_tiles returns how many elements the points of tiles have, on both sides of the
// convolution.
static int64_t points_of_tiles(const form *f, int64_t tiles) {
  return count(points_at(NULL, tiles, f->in)) + count(points_at(NULL, tiles, f->out));
}

// multiply computes the points of the results of a block from those of its tiles.
static int multiply(const kernel *k, const points *from, const points *to) {
  const points *w = &k->kernels;
  for (int p = 0; p < POINTS; p++)
    if (gb_dnn.sgemm('N', 'N', from->rows, to->columns, from->columns, 1, row(from, p, 0), row_size(from), row(w, p, 0), row_size(w), 0,
                     row(to, p, 0), row_size(to)))
      return 1;
  return 0;
}

// blocks_of returns into how many blocks of at most that many tiles to divide them.
static int blocks_of(int64_t tiles, int64_t most) { return (int)((tiles + most - 1) / most); }

// convolve computes the tiles of a part.
static int convolve(const void *of, int part) {
  const kernel *k = of;
  int64_t begin = gb_dnn_part(k->end, k->parts, part), end = gb_dnn_part(k->end, k->parts, part + 1), most = block_of(k->form, k->parts);
  int blocks = blocks_of(end - begin, most), failed = 0;
  float *memory = k->memory + part * points_of_tiles(k->form, most);
  for (int i = 0; i < blocks && !failed; i++) {
    int64_t first = begin + gb_dnn_part(end - begin, blocks, i), tiles = begin + gb_dnn_part(end - begin, blocks, i + 1) - first;
    points from = points_at(memory, tiles, k->from.channels), to = points_at(memory + count(from), tiles, k->to.channels);
    read_images(k, first, &from, 0, tiles);
    failed = multiply(k, &from, &to);
    if (!failed) write_results(k, first, &to);
  }
  return failed;
}

// from_points and to_points are the points of the tiles that all parts have together.
static points from_points(const kernel *k) { return points_at(k->memory, k->end - k->begin, k->from.channels); }

static points to_points(const kernel *k) {
  return points_at(k->memory + count(from_points(k)), k->end - k->begin, k->to.channels);
}

static int transform_tiles(const void *of, int part) {
  const kernel *k = of;
  points from = from_points(k), to = to_points(k);
  int64_t first = gb_dnn_part(from.rows, k->parts, part), end = gb_dnn_part(from.rows, k->parts, part + 1);
  read_images(k, k->begin, &from, first, end);
  read_gradients(k, k->begin, &to, first, end);
  return 0;
}

// add_products adds the products of tiles and gradients to the points of the kernels' gradient. A
// part has some of the rows of these points, counted over all of them.
static int add_products(const void *of, int part) {
  const kernel *k = of;
  points from = from_points(k), to = to_points(k);
  const points *left = k->form->swapped ? &to : &from, *right = k->form->swapped ? &from : &to;
  int64_t rows = k->kernels.rows, end = gb_dnn_part(POINTS * rows, k->parts, part + 1);
  for (int64_t at = gb_dnn_part(POINTS * rows, k->parts, part), next; at < end; at = next) {
    int64_t p = at / rows, first = at % rows;
    next = gb_dnn_smaller((p + 1) * rows, end);
    if (gb_dnn.sgemm('T', 'N', next - at, k->kernels.columns, left->rows, 1, row(left, (int)p, 0) + first, row_size(left), row(right, (int)p, 0),
                     row_size(right), k->begin == 0 ? 0 : 1, row(&k->kernels, (int)p, first), row_size(&k->kernels)))
      return 1;
  }
  return 0;
}

// differentiate computes the gradient of the weights.
static int differentiate(kernel *k) {
  int64_t all = k->end;
  int blocks = blocks_of(all, block_of(k->form, k->parts) * k->parts);
  for (int i = 0; i < blocks; i++) {
    k->begin = gb_dnn_part(all, blocks, i), k->end = gb_dnn_part(all, blocks, i + 1);
    if (gb_dnn_together(transform_tiles, k, k->parts) || gb_dnn_together(add_products, k, k->parts)) return 1;
  }
  return gb_dnn_together(transform_gradient, k, k->parts);
}

// With fewer channels, the transforms of the tiles take too long, and with fewer tiles, that of the
// kernels. One core of a Xeon with AVX-512 computes a convolution of 64 to 512 channels in 0.34 to
// 0.65 of oneDNN's time, and one of 32 in 0.85.
enum { LEAST_CHANNELS = 32, LEAST_TILES = 16 };

static int is_possible(const form *f) {
  int plain = f->stride[0] == 1 && f->stride[1] == 1 && f->dilation[0] == 1 && f->dilation[1] == 1;
  int whole = f->in % LANES == 0 && f->out % LANES == 0 && f->in <= MOST_CHANNELS && f->out <= MOST_CHANNELS;
  return f->rows == KERNEL && f->columns == KERNEL && plain && whole;
}

// taps_inside counts, for all pixels of the result along an axis, the taps that are not zeros.
static int64_t taps_inside(int64_t pixels, int64_t results, int64_t before) {
  int64_t n = 0;
  for (int64_t i = 0; i < results; i++)
    for (int64_t at = i - before; at < i - before + KERNEL; at++) n += at >= 0 && at < pixels;
  return n;
}

// saves reports whether the points of all tiles have clearly fewer products than the taps that
// other algorithms compute with. Small images fill their tiles badly.
static int saves(const form *f, int64_t height, int64_t width) {
  int64_t taps = taps_inside(f->height, f->out_height, f->before[0]) * taps_inside(f->width, f->out_width, f->before[1]);
  return 5 * POINTS * tiles_along(height) * tiles_along(width) <= 4 * taps;
}

// The answer is the same for a convolution and its gradients.
int gb_dnn_winograd_pays(const form *f) {
  if (!is_possible(f) || f->in < LEAST_CHANNELS || f->out < LEAST_CHANNELS) return 0;
  int64_t of_image = f->batch * tiles_along(f->height) * tiles_along(f->width);
  int64_t of_result = f->batch * tiles_along(f->out_height) * tiles_along(f->out_width);
  return of_image >= LEAST_TILES && of_result >= LEAST_TILES && saves(f, f->height, f->width) && saves(f, f->out_height, f->out_width);
}

// With fewer tiles, a thread would mostly read the kernels' points.
enum { LEAST_TILES_OF_PART = 8 };

int gb_dnn_winograd_parts(const form *f) {
  const int64_t many = (int64_t)GB_DNN_MOST_PARTS * 4;  // Enough rows for all threads.
  int64_t useful = tiles_of(f) / LEAST_TILES_OF_PART;
  return (int)gb_dnn_smaller(gb_dnn_parts(many), useful > 1 ? useful : 1);
}

size_t gb_dnn_winograd_size(const form *f, int parts) {
  int64_t kernels = count(points_at(NULL, f->in > f->out ? f->in : f->out, f->in > f->out ? f->out : f->in));
  return sizeof(float) * (size_t)(kernels + parts * points_of_tiles(f, block_of(f, parts)));
}

int gb_dnn_winograd(const form *f, const float *a, const float *b, float *out, int parts, float *memory) {
  images x = {(float *)a, f->height, f->width, f->in}, y = {out, f->out_height, f->out_width, f->out};
  kernel k = {.form = f, .from = x, .to = y, .weights = (float *)b, .before = {f->before[0], f->before[1]}, .parts = parts};
  k.end = tiles_of(f);
  switch (f->op) {
    case GB_DNN_BACKWARD_WEIGHTS:
      k.to.data = (float *)b, k.weights = out;
      break;
    case GB_DNN_BACKWARD_DATA:
      k.from = y, k.from.data = (float *)a;
      k.to = x, k.to.data = out;
      for (int i = 0; i < 2; i++) k.before[i] = KERNEL - 1 - f->before[i];
  }
  // The gradient has the rows of the weights.
  int64_t rows = k.from.channels, columns = k.to.channels;
  k.kernels = f->op == GB_DNN_BACKWARD_WEIGHTS && f->swapped ? points_at(memory, columns, rows) : points_at(memory, rows, columns);
  k.memory = memory + count(k.kernels);
  if (f->op == GB_DNN_BACKWARD_WEIGHTS) return differentiate(&k);
  return gb_dnn_together(transform_kernels, &k, parts) || gb_dnn_together(convolve, &k, parts);
}
