// Random convolutions by Winograd's algorithm and their gradients, on each kind of processor and in
// any number of parts, against a plain loop.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int kind;  // 0: neither AVX2 nor AVX-512. 1: AVX2. 2: all that this processor has.

static int supported(const char *name, int here) { return here && kind >= (strncmp(name, "avx512", 6) == 0 ? 2 : 1); }

#include "../wide.h"
#define __builtin_cpu_supports(name) supported(name, (__builtin_cpu_supports)(name))
#include "../winograd.c"

struct gb_dnn_library gb_dnn;

int64_t gb_dnn_part(int64_t rows, int parts, int part) { return rows * part / parts; }

int gb_dnn_parts(int64_t rows) { return (int)rows; }

int gb_dnn_together(gb_dnn_task task, const void *kernel, int parts) {
  for (int i = parts - 1; i >= 0; i--)
    if (task(kernel, i)) return 1;
  return 0;
}

static int failing = -1;  // So many products succeed, if it is not negative.

static int multiply_plainly(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                            int64_t ldb, float beta, float *c, int64_t ldc) {
  if (failing >= 0 && failing-- == 0) return 1;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t l = 0; l < k; l++) sum += (double)(ta == 'T' ? a[l * lda + i] : a[i * lda + l]) * (tb == 'T' ? b[j * ldb + l] : b[l * ldb + j]);
      c[i * ldc + j] = (float)(alpha * sum + (beta != 0 ? beta * c[i * ldc + j] : 0));
    }
  return 0;
}

static int below(int n) { return rand() % n; }

static form random_form(void) {
  form f = {below(3), 1 + below(4), 1 + below(11), 1 + below(11), LANES * (1 + below(3)), 0, 0, LANES * (1 + below(3)),
            KERNEL, KERNEL, {1, 1}, {1, 1}, {below(4), below(4)}, {below(4), below(4)}, below(2), 0};
  f.out_height = f.height + f.before[0] + f.after[0] - 2, f.out_width = f.width + f.before[1] + f.after[1] - 2;
  return f.out_height > 0 && f.out_width > 0 ? f : random_form();
}

static float *random_numbers(int64_t n) {
  float *x = malloc((size_t)n * sizeof *x);
  for (int64_t i = 0; i < n; i++) x[i] = (float)rand() / (float)RAND_MAX * 2 - 1;
  return x;
}

// operands are the image, the weights and the result, or their gradients.
typedef struct {
  float *of[3];
  int64_t size[3];
} operands;

// The operand that each operation computes.
static const int computed[] = {2, 0, 1};

// expect computes the operation by a plain loop.
static void expect(const form *f, const operands *o, double *want) {
  memset(want, 0, (size_t)o->size[computed[f->op]] * sizeof *want);
  int64_t places = f->batch * f->out_height * f->out_width;
  for (int64_t p = 0; p < places * KERNEL * KERNEL; p++) {
    int64_t place = p / (KERNEL * KERNEL), i = p / KERNEL % KERNEL, j = p % KERNEL, n = place / (f->out_height * f->out_width);
    int64_t row = place / f->out_width % f->out_height + i - f->before[0], column = place % f->out_width + j - f->before[1];
    if (row < 0 || row >= f->height || column < 0 || column >= f->width) continue;
    for (int64_t c = 0; c < f->in * f->out; c++) {
      int64_t in = c / f->out, out = c % f->out, pair = f->swapped ? out * f->in + in : c;
      int64_t at[] = {((n * f->height + row) * f->width + column) * f->in + in, (i * KERNEL + j) * f->in * f->out + pair, place * f->out + out};
      int to = computed[f->op], a = to == 0 ? 2 : 0, b = to == 1 ? 2 : 1;
      want[at[to]] += (double)o->of[a][at[a]] * o->of[b][at[b]];
    }
  }
}

// run computes it by Winograd's algorithm. The memory has just the size that is needed.
static int run(const form *f, const operands *o, int parts) {
  int to = computed[f->op], a = to == 0 ? 2 : 0, b = to == 1 ? 2 : 1;
  memset(o->of[to], 0xff, (size_t)o->size[to] * sizeof(float));
  float *memory = malloc(gb_dnn_winograd_size(f, parts));
  int failed = gb_dnn_winograd(f, o->of[a], o->of[b], o->of[to], parts, memory);
  free(memory);
  return failed;
}

static int is_wrong(const form *f, const operands *o, const double *want) {
  double largest = 1, worst = 0;
  for (int64_t i = 0; i < o->size[computed[f->op]]; i++) {
    double off = fabs(o->of[computed[f->op]][i] - want[i]);
    largest = fmax(largest, fabs(want[i])), worst = off <= worst ? worst : off;
  }
  return !(worst <= 3e-6 * largest);
}

static int check(form f, int parts) {
  operands o = {.size = {f.batch * f.height * f.width * f.in, KERNEL * KERNEL * f.in * f.out, f.batch * f.out_height * f.out_width * f.out}};
  for (int i = 0; i < 3; i++) o.of[i] = random_numbers(o.size[i]);
  double *want = malloc((size_t)o.size[computed[f.op]] * sizeof *want);
  expect(&f, &o, want);
  int wrong = 0;
  for (kind = 0; kind < 3; kind++)
    if (run(&f, &o, parts) || is_wrong(&f, &o, want)) {
      printf("operation %d, %dx%dx%dx%d to %dx%dx%d, zeros %d %d, swapped %d, %d parts, processor %d: wrong\n", (int)f.op, (int)f.batch,
             (int)f.height, (int)f.width, (int)f.in, (int)f.out_height, (int)f.out_width, (int)f.out, (int)f.before[0], (int)f.before[1],
             (int)f.swapped, parts, kind);
      wrong++;
    }
  failing = below(POINTS);
  if (!run(&f, &o, parts)) printf("a product fails, and the convolution doesn't\n"), wrong++;
  failing = -1;
  for (int i = 0; i < 3; i++) free(o.of[i]);
  free(want);
  return wrong;
}

int main(void) {
  gb_dnn.sgemm = multiply_plainly;
  int wrong = 0;
  for (int i = 0; i < 60; i++) wrong += check(random_form(), 1 + below(5));
  // Several blocks for each part.
  for (int op = 0; op < 3; op++)
    wrong += check((form){op, 3, 21, 19, 32, 21, 19, 16, KERNEL, KERNEL, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 0, 0}, 1 + op % 2);
  return wrong > 0;
}
