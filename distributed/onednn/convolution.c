// Convolutions of images [batch, height, width, channels], and their gradients.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS };

// form describes the forward convolution, for its gradients too. It must agree with
// pjrt/convolution.go.
typedef struct {
  int64_t op, batch, height, width, in, out_height, out_width, out, rows, columns;
  int64_t stride[2], dilation[2], before[2], after[2];
  int64_t swapped;  // The weights are [rows, columns, out, in], not [rows, columns, in, out].
} form;

// buffer is one of the operands, or the result. oneDNN may want the weights in a layout of its own.
// Then `own` is not NULL, and `reorder` converts between the two layouts.
typedef struct {
  int argument;
  void *memory, *own, *reorder;
  size_t own_size;
} buffer;

// plan is a prepared convolution.
typedef struct plan {
  form form;
  int threads;  // With another number, part of the result would be missing.
  buffer image, weights, result;  // src, weights and dst, or their gradients
  void *primitive, *scratchpad;
  size_t scratchpad_size;
  struct plan *next;
} plan;

static plan *plans;  // All that were prepared.

// workspace is temporary memory for the call that has the lock.
static struct {
  char *data;
  size_t size;
} workspace;

static size_t aligned(size_t size) { return (size + 63) & ~(size_t)63; }

static int reserve(size_t size) {
  if (size <= workspace.size) return 0;
  free(workspace.data);
  workspace.data = aligned_alloc(64, aligned(size));
  workspace.size = workspace.data == NULL ? 0 : size;
  return workspace.data == NULL;
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
  if (f->op == FORWARD) {
    *described = forward;
    return 0;
  }
  int failed = f->op == BACKWARD_DATA
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
  p->image.argument = p->form.op == BACKWARD_DATA ? GB_DNN_DIFF_SRC : GB_DNN_SRC;
  p->weights.argument = p->form.op == BACKWARD_WEIGHTS ? GB_DNN_DIFF_WEIGHTS : GB_DNN_WEIGHTS;
  p->result.argument = p->form.op == FORWARD ? GB_DNN_DST : GB_DNN_DIFF_DST;
}

// build creates the primitive and its buffers from the description.
static int build(plan *p, const void *src, const void *weights, const void *dst, void *described) {
  int gradient = p->form.op == BACKWARD_WEIGHTS;
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

// plan_for returns the prepared convolution of a form for the calling thread, or NULL.
static plan *plan_for(const form *f) {
  int threads = gb_dnn_threads();
  for (plan *p = plans; p != NULL; p = p->next)
    if (p->threads == threads && memcmp(&p->form, f, sizeof *f) == 0) return p;
  plan *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->form = *f;
  p->threads = threads;
  if (prepare(p)) {
    discard(p);
    return NULL;
  }
  p->next = plans;
  plans = p;
  return p;
}

static int reorder(const plan *p, void *from, void *to) {
  gb_dnn_argument arguments[] = {{GB_DNN_SRC, from}, {GB_DNN_DST, to}};
  return gb_dnn.primitive_execute(p->weights.reorder, gb_dnn.stream, 2, arguments);
}

// run computes in the buffers that were set.
static int run(plan *p) {
  const buffer *w = &p->weights;
  int own = w->own != NULL, gradient = p->form.op == BACKWARD_WEIGHTS;
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

static int set_data(plan *p, void *image, void *weights, void *result) {
  if (reserve(p->scratchpad_size + p->weights.own_size)) return 1;
  if (p->weights.own != NULL && gb_dnn.memory_set_data(p->weights.own, workspace.data + p->scratchpad_size)) return 1;
  return gb_dnn.memory_set_data(p->scratchpad, workspace.data) || gb_dnn.memory_set_data(p->image.memory, image) ||
         gb_dnn.memory_set_data(p->weights.memory, weights) || gb_dnn.memory_set_data(p->result.memory, result);
}

// compute finds the place of a, b and out in the convolution.
static int compute(const form *f, void *a, void *b, void *out) {
  plan *p = plan_for(f);
  if (p == NULL) return 1;
  if (out == NULL) return 0;
  switch (f->op) {
    case FORWARD:
      return set_data(p, a, b, out) || run(p);
    case BACKWARD_DATA:
      return set_data(p, out, b, a) || run(p);
  }
  return set_data(p, a, out, b) || run(p);
}

int gb_dnn_convolution(const int64_t *numbers, int64_t length, const float *a, const float *b, float *out, char *error,
                       size_t error_size) {
  if (length != sizeof(form) / sizeof(int64_t)) {
    snprintf(error, error_size, "a convolution of %lld numbers, not %zu", (long long)length, sizeof(form) / sizeof(int64_t));
    return 1;
  }
  gb_dnn_lock();
  int failed = compute((const form *)numbers, (void *)a, (void *)b, out);
  gb_dnn_unlock();
  if (failed) snprintf(error, error_size, "oneDNN can't compute this convolution");
  return failed;
}
