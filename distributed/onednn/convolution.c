// Convolutions of images [batch, height, width, channels], and their gradients.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convolution.h"
#include "library.h"

typedef gb_dnn_convolution_form form;

// buffer is one of the operands, or the result. oneDNN may want the weights in a layout of its own.
// Then `own` is not NULL, and `reorder` converts between the two layouts.
typedef struct {
  int argument;
  void *memory, *own, *reorder;
  size_t own_size;
} buffer;

// MOST_WEIGHTS is the largest number of weights for which oneDNN is faster than XLA. It rearranges
// them in each call, and its algorithms read all of them for each few rows of the result.
enum { MOST_WEIGHTS = 1 << 19 };

// plan is a prepared convolution.
typedef struct plan {
  form form;
  int threads;  // With another number, part of the result would be missing.
  buffer image, weights, result;  // src, weights and dst, or their gradients
  void *primitive, *scratchpad;
  size_t scratchpad_size;
  struct plan *next;
} plan;

// desk is what the thread that computes a part has for itself.
typedef struct {
  plan *plans;      // All that it has prepared.
  char *workspace;  // Temporary memory.
  size_t size;
  float *sum;  // The gradient of the weights for its images, in the workspace.
} desk;

static desk desks[GB_DNN_MOST_PARTS];

// guests are the desks of threads that compute alone, each for one convolution at a time.
static struct {
  desk desk;
  atomic_flag taken;
} guests[GB_DNN_MOST_PARTS];

static size_t aligned(size_t size) { return (size + 63) & ~(size_t)63; }

static int reserve(desk *d, size_t size) {
  if (size <= d->size) return 0;
  free(d->workspace);
  d->workspace = aligned_alloc(64, aligned(size));
  d->size = d->workspace == NULL ? 0 : size;
  return d->workspace == NULL;
}

static int image_layout(void **layout, int64_t batch, int64_t height, int64_t width, int64_t channels) {
  gb_dnn_dims dims = {batch, channels, height, width};
  gb_dnn_dims strides = {height * width * channels, 1, width * channels, channels};
  return gb_dnn.layout_with_strides(layout, 4, dims, GB_DNN_F32, strides);
}

static int weights_layouts(const form *f, void **given, void **any) {
  gb_dnn_dims dims = {f->out, f->in, f->rows, f->columns};
  gb_dnn_dims strides = {1, f->out, f->columns * f->in * f->out, f->in * f->out};
  if (f->swapped) strides[0] = f->in, strides[1] = 1;
  return gb_dnn.layout_with_strides(given, 4, dims, GB_DNN_F32, strides) ||
         gb_dnn.layout_with_tag(any, 4, dims, GB_DNN_F32, GB_DNN_ANY);
}

// describe lets oneDNN choose an algorithm. The gradients need the forward convolution as a hint.
static int describe(const form *f, const void *src, const void *weights, const void *dst, void **described) {
  gb_dnn_dims dilation = {f->dilation[0] - 1, f->dilation[1] - 1};
  void *forward = NULL;
  if (gb_dnn.forward(&forward, gb_dnn.engine, GB_DNN_TRAINING, GB_DNN_DIRECT, src, weights, NULL, dst, f->stride,
                     dilation, f->before, f->after, gb_dnn.attributes))
    return 1;
  if (f->op == GB_DNN_FORWARD) {
    *described = forward;
    return 0;
  }
  int failed = f->op == GB_DNN_BACKWARD_DATA
                   ? gb_dnn.backward_data(described, gb_dnn.engine, GB_DNN_DIRECT, src, weights, dst, f->stride,
                                          dilation, f->before, f->after, forward, gb_dnn.attributes)
                   : gb_dnn.backward_weights(described, gb_dnn.engine, GB_DNN_DIRECT, src, weights, NULL, dst,
                                             f->stride, dilation, f->before, f->after, forward, gb_dnn.attributes);
  gb_dnn.plan_destroy(forward);
  return failed;
}

// convert prepares the conversion of the weights from the given layout, or of their gradients to
// it.
static int convert(buffer *weights, const void *given, const void *wanted, int to_given) {
  if (gb_dnn.layout_equal(given, wanted)) return 0;
  void *described = NULL;
  const void *from = to_given ? wanted : given, *to = to_given ? given : wanted;
  if (gb_dnn.reorder(&described, from, gb_dnn.engine, to, gb_dnn.engine, NULL)) return 1;
  weights->own_size = aligned(gb_dnn.layout_size(wanted));
  int failed = gb_dnn.primitive_create(&weights->reorder, described) ||
               gb_dnn.memory_create(&weights->own, wanted, gb_dnn.engine, NULL);
  gb_dnn.plan_destroy(described);
  return failed;
}

static void name_arguments(plan *p) {
  p->image.argument = p->form.op == GB_DNN_BACKWARD_DATA ? GB_DNN_DIFF_SRC : GB_DNN_SRC;
  p->weights.argument = p->form.op == GB_DNN_BACKWARD_WEIGHTS ? GB_DNN_DIFF_WEIGHTS : GB_DNN_WEIGHTS;
  p->result.argument = p->form.op == GB_DNN_FORWARD ? GB_DNN_DST : GB_DNN_DIFF_DST;
}

// build creates the primitive and its buffers from the description.
static int build(plan *p, const void *src, const void *weights, const void *dst, void *described) {
  int gradient = p->form.op == GB_DNN_BACKWARD_WEIGHTS;
  const void *wanted = gb_dnn.layout_of(described, gradient ? GB_DNN_DIFF_WEIGHTS_LAYOUT : GB_DNN_WEIGHTS_LAYOUT, 0);
  const void *scratchpad = gb_dnn.layout_of(described, GB_DNN_SCRATCHPAD_LAYOUT, 0);
  p->scratchpad_size = aligned(gb_dnn.layout_size(scratchpad));
  name_arguments(p);
  return gb_dnn.primitive_create(&p->primitive, described) ||
         gb_dnn.memory_create(&p->scratchpad, scratchpad, gb_dnn.engine, NULL) ||
         gb_dnn.memory_create(&p->image.memory, src, gb_dnn.engine, NULL) ||
         gb_dnn.memory_create(&p->weights.memory, weights, gb_dnn.engine, NULL) ||
         gb_dnn.memory_create(&p->result.memory, dst, gb_dnn.engine, NULL) ||
         convert(&p->weights, weights, wanted, gradient);
}

// is_slow reports whether oneDNN has only its reference for a convolution, which is written to be
// read.
static int is_slow(const void *described) {
  const char *name = NULL;
  return gb_dnn.query(described, GB_DNN_IMPLEMENTATION, 0, &name) || name == NULL || strstr(name, "ref") != NULL;
}

static int prepare(plan *p) {
  const form *f = &p->form;
  void *src = NULL, *dst = NULL, *weights = NULL, *any = NULL, *described = NULL;
  int failed = image_layout(&src, f->batch, f->height, f->width, f->in) ||
               image_layout(&dst, f->batch, f->out_height, f->out_width, f->out) ||
               weights_layouts(f, &weights, &any) || describe(f, src, any, dst, &described) ||
               is_slow(described) || build(p, src, weights, dst, described);
  if (described != NULL) gb_dnn.plan_destroy(described);
  void *layouts[] = {src, dst, weights, any};
  for (int i = 0; i < 4; i++)
    if (layouts[i] != NULL) gb_dnn.layout_destroy(layouts[i]);
  return failed;
}

static void discard(plan *p) {
  void *memories[] = {p->image.memory, p->weights.memory, p->weights.own, p->result.memory, p->scratchpad};
  for (int i = 0; i < 5; i++)
    if (memories[i] != NULL) gb_dnn.memory_destroy(memories[i]);
  if (p->primitive != NULL) gb_dnn.primitive_destroy(p->primitive);
  if (p->weights.reorder != NULL) gb_dnn.primitive_destroy(p->weights.reorder);
  free(p);
}

// plan_for returns the prepared convolution of a form for a number of threads, or NULL.
static plan *plan_for(desk *d, const form *f, int threads) {
  for (plan *p = d->plans; p != NULL; p = p->next)
    if (p->threads == threads && memcmp(&p->form, f, sizeof *f) == 0) return p;
  plan *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->form = *f;
  p->threads = threads;
  if (prepare(p)) {
    discard(p);
    return NULL;
  }
  p->next = d->plans;
  d->plans = p;
  return p;
}

static int reorder(const plan *p, void *from, void *to) {
  gb_dnn_argument arguments[] = {{GB_DNN_SRC, from}, {GB_DNN_DST, to}};
  return gb_dnn.primitive_execute(p->weights.reorder, gb_dnn.stream, 2, arguments);
}

// run computes in the buffers that were set.
static int run(plan *p) {
  const buffer *w = &p->weights;
  int own = w->own != NULL, gradient = p->form.op == GB_DNN_BACKWARD_WEIGHTS;
  gb_dnn_argument arguments[] = {
      {p->image.argument, p->image.memory},
      {w->argument, own ? w->own : w->memory},
      {p->result.argument, p->result.memory},
      {GB_DNN_SCRATCHPAD, p->scratchpad},
  };
  if (own && !gradient && reorder(p, w->memory, w->own)) return 1;
  if (gb_dnn.primitive_execute(p->primitive, gb_dnn.stream, 4, arguments)) return 1;
  if (own && gradient && reorder(p, w->own, w->memory)) return 1;
  return gb_dnn.stream_wait(gb_dnn.stream);
}

// is_for_xla reports whether XLA is faster.
static int is_for_xla(const form *f) {
  return !gb_dnn_winograd_pays(f) && f->rows * f->columns * f->in * f->out > MOST_WEIGHTS;
}

static size_t weights_size(const form *f) { return aligned(sizeof(float) * f->rows * f->columns * f->in * f->out); }

static int set_data(desk *d, plan *p, void *image, void *weights, void *result) {
  size_t used = p->scratchpad_size + p->weights.own_size;
  if (reserve(d, used + (weights == NULL ? weights_size(&p->form) : 0))) return 1;
  if (weights == NULL) weights = d->sum = (float *)(d->workspace + used);
  if (p->weights.own != NULL && gb_dnn.memory_set_data(p->weights.own, d->workspace + p->scratchpad_size)) return 1;
  return gb_dnn.memory_set_data(p->scratchpad, d->workspace) || gb_dnn.memory_set_data(p->image.memory, image) ||
         gb_dnn.memory_set_data(p->weights.memory, weights) || gb_dnn.memory_set_data(p->result.memory, result);
}

// kernel is a convolution that is to be computed, in parts of the batch.
typedef struct {
  const form *form;
  float *a, *b, *out;
  int parts, threads;  // oneDNN's threads for each part.
} kernel;

// cut returns a part of the form and of its images.
static form cut(const kernel *k, int part, float **image, float **result) {
  const form *f = k->form;
  int64_t begin = gb_dnn_part(f->batch, k->parts, part);
  form own = *f;
  own.batch = gb_dnn_part(f->batch, k->parts, part + 1) - begin;
  *image += begin * f->height * f->width * f->in;
  *result += begin * f->out_height * f->out_width * f->out;
  return own;
}

// compute_at finds the place of a, b and out in the convolution.
static int compute_at(desk *d, const kernel *k, int part) {
  float *image = k->a, *weights = k->b, *result = k->out;
  if (k->form->op == GB_DNN_BACKWARD_DATA) image = k->out, result = k->a;
  if (k->form->op == GB_DNN_BACKWARD_WEIGHTS) weights = part == 0 ? k->out : NULL, result = k->b;
  form own = cut(k, part, &image, &result);
  plan *p = plan_for(d, &own, k->threads);
  return p == NULL || set_data(d, p, image, weights, result) || run(p);
}

static int compute(const void *of, int part) { return compute_at(&desks[part], of, part); }

// add_up adds the other parts' sums to a part of the first one's.
static int add_up(const void *of, int part) {
  const kernel *k = of;
  int64_t n = k->form->rows * k->form->columns * k->form->in * k->form->out;
  int64_t end = gb_dnn_part(n, k->parts, part + 1);
  for (int other = 1; other < k->parts; other++)
    for (int64_t i = gb_dnn_part(n, k->parts, part); i < end; i++) k->out[i] += desks[other].sum[i];
  return 0;
}

// by_winograd computes at a desk, if Winograd's algorithm pays.
static int by_winograd(desk *d, const kernel *k) {
  if (k->out == NULL) return 0;
  return reserve(d, gb_dnn_winograd_size(k->form, k->parts)) ||
         gb_dnn_winograd(k->form, k->a, k->b, k->out, k->parts, (float *)d->workspace);
}

static int convolve(kernel k) {
  if (gb_dnn_winograd_pays(k.form)) {
    k.parts = gb_dnn_winograd_parts(k.form);
    return by_winograd(&desks[0], &k);
  }
  k.parts = gb_dnn_parts(k.form->batch);
  k.threads = k.parts == 1 ? gb_dnn.threads : 1;
  if (k.out == NULL) {
    float *none = NULL;
    form first = cut(&k, 0, &none, &none);
    return plan_for(&desks[0], &first, k.threads) == NULL;
  }
  if (gb_dnn_together(compute, &k, k.parts)) return 1;
  return k.form->op == GB_DNN_BACKWARD_WEIGHTS && k.parts > 1 && gb_dnn_together(add_up, &k, k.parts);
}

// convolve_at computes on the calling thread.
static int convolve_at(desk *d, const kernel *k) {
  if (gb_dnn_winograd_pays(k->form)) return by_winograd(d, k);
  return k->out == NULL ? plan_for(d, k->form, 1) == NULL : compute_at(d, k, 0);
}

// convolve_alone computes at a desk that no other thread has.
static int convolve_alone(kernel k) {
  k.parts = k.threads = 1;
  int at = 0;
  while (at < GB_DNN_MOST_PARTS && atomic_flag_test_and_set(&guests[at].taken)) at++;
  if (at == GB_DNN_MOST_PARTS) return 1;
  gb_dnn_alone();
  int failed = convolve_at(&guests[at].desk, &k);
  atomic_flag_clear(&guests[at].taken);
  return failed;
}

static int convolve_together(kernel k) {
  gb_dnn_lock();
  int failed = convolve(k);
  gb_dnn_unlock();
  return failed;
}

int gb_dnn_convolution(const int64_t *numbers, int64_t length, const float *a, const float *b, float *out, char *error,
                       size_t error_size) {
  if (length != sizeof(form) / sizeof(int64_t)) {
    snprintf(error, error_size, "a convolution of %lld numbers, not %zu", (long long)length, sizeof(form) / sizeof(int64_t));
    return 1;
  }
  kernel k = {(const form *)numbers, (float *)a, (float *)b, out, 0, 0};
  if (out == NULL && is_for_xla(k.form)) return 1;
  int failed = k.form->alone ? convolve_alone(k) : convolve_together(k);
  if (failed) snprintf(error, error_size, "oneDNN can't compute this convolution");
  return failed;
}
