// The update of Adam and AdamW (Kingma and Ba, https://arxiv.org/abs/1412.6980; Loshchilov and
// Hutter, https://arxiv.org/abs/1711.05101) in one pass over memory. XLA takes three: one for each
// result.
// Products and sums are rounded one by one: one step for both, which only some processors have,
// would give ranks on unlike nodes different weights.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "library.h"
#include "wide.h"

typedef struct {
  const gb_dnn_adam_update *update;
  int parts;
} kernel;

enum { BLOCK = 256, LINE = 16 };  // In elements: 16 have 64 bytes.

// fetch begins to read a line of the next block, while this block is computed.
GB_INLINE void fetch(const float *weight, const float *moment1, const float *moment2, const float *gradient) {
  __builtin_prefetch(weight + BLOCK, 1, 2);
  __builtin_prefetch(moment1 + BLOCK, 1, 2);
  __builtin_prefetch(moment2 + BLOCK, 1, 2);
  __builtin_prefetch(gradient + BLOCK, 0, 2);
}

// run updates the elements from `begin` to `end`, block by block, so that what is computed in
// between stays in the first cache. The results may be in the memory of the operands.
GB_INLINE void run_inline(gb_roots roots, const gb_dnn_adam_update *u, int64_t begin, int64_t end) {
  float step[BLOCK], root[BLOCK];
  const int decays = u->decay != 0;
  for (int64_t at = begin, n; at < end; at += n) {
    n = end - at < BLOCK ? end - at : BLOCK;
    const float *gradient = u->gradient + at, *weight = u->weight + at, *moment1 = u->moment1 + at, *moment2 = u->moment2 + at;
    float *new_weight = u->new_weight + at, *new_moment1 = u->new_moment1 + at, *new_moment2 = u->new_moment2 + at;
    GB_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
      float g = u->scale * gradient[i], m = u->keep1 * moment1[i] + u->add1 * g, v = u->keep2 * moment2[i] + u->add2 * (g * g);
      new_moment1[i] = m;
      new_moment2[i] = v;
      step[i] = u->rate * (m * u->debias1);
      root[i] = v * u->debias2;
    }
    for (int64_t i = 0; i < n; i += LINE) fetch(weight + i, moment1 + i, moment2 + i, gradient + i);
    for (int64_t i = n; i % 16 != 0; i++) root[i] = 0;
    roots(root, (n + 15) / 16);
    GB_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
      float w = weight[i], decay = decays ? u->rate * (w * u->decay) : 0;  // A weight may be infinite.
      new_weight[i] = w - (step[i] / (root[i] + u->epsilon) + decay);
    }
  }
}

GB_WIDE(run, (const gb_dnn_adam_update *u, int64_t begin, int64_t end), u, begin, end)

void gb_dnn_adam_row(const gb_dnn_adam_update *update, int64_t begin, const float *gradient, int64_t count) {
  gb_dnn_adam_update row = *update;
  row.weight += begin, row.moment1 += begin, row.moment2 += begin;
  row.new_weight += begin, row.new_moment1 += begin, row.new_moment2 += begin;
  row.gradient = gradient;
  run(&row, 0, count);
}

static int compute(const void *of, int part) {
  const kernel *k = of;
  int64_t count = k->update->count;
  run(k->update, gb_dnn_part(count, k->parts, part), gb_dnn_part(count, k->parts, part + 1));
  return 0;
}

void gb_dnn_adam(const gb_dnn_adam_update *update) {
  kernel k = {update, 0};
  gb_dnn_lock();
  k.parts = gb_dnn_own_parts(update->count);
  gb_dnn_together(compute, &k, k.parts);
  gb_dnn_unlock();
}
