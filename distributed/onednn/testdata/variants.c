// The variants of Adam's update for different processors must give the same bits: ranks on unlike
// nodes would else have different weights.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../adam.c"

void gb_dnn_lock(void) {}
void gb_dnn_unlock(void) {}
int gb_dnn_own_parts(int64_t rows) { return rows > 0; }
int64_t gb_dnn_part(int64_t rows, int parts, int part) { return rows * part / parts; }
int gb_dnn_together(gb_dnn_task task, const void *kernel, int parts) { return parts > 0 && task(kernel, 0); }

static void plain(const gb_dnn_adam_update *u, int64_t begin, int64_t end) { run_inline(gb_roots_plain, u, begin, end); }

enum { CALLS = 2000, MOST = 700 };

static float random_float(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

// update runs a variant, and returns how many of its results differ from those of the plain one.
static int differing(void (*variant)(const gb_dnn_adam_update *, int64_t, int64_t)) {
  static float weight[MOST], moment1[MOST], moment2[MOST], gradient[MOST], results[2][3 * MOST];
  gb_dnn_adam_update u = {1 + rand() % MOST, weight, moment1, moment2, gradient, NULL, NULL, NULL,
                          0.9f, 0.1f, 1 / 0.3f, 0.999f, 0.001f, 1 / 0.007f, 1e-7f, 0.01f, rand() % 2 ? 0.1f : 0, random_float()};
  for (int i = 0; i < MOST; i++) {
    weight[i] = random_float(), moment1[i] = random_float(), gradient[i] = random_float();
    moment2[i] = random_float() * random_float();
    if (moment2[i] < 0) moment2[i] = -moment2[i];
  }
  memset(results, 0, sizeof results);
  for (int i = 0; i < 2; i++) {
    u.new_weight = results[i], u.new_moment1 = results[i] + MOST, u.new_moment2 = results[i] + 2 * MOST;
    (i == 0 ? plain : variant)(&u, 0, u.count);
  }
  int n = 0;
  for (int i = 0; i < 3 * MOST; i++) n += memcmp(&results[0][i], &results[1][i], sizeof(float)) != 0;
  return n;
}

static int check(const char *name, void (*variant)(const gb_dnn_adam_update *, int64_t, int64_t)) {
  int n = 0;
  for (int call = 0; call < CALLS; call++) n += differing(variant);
  printf("%s: %d results differ\n", name, n);
  return n > 0;
}

int main(void) {
  int failed = check("this processor", run);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) failed |= check("AVX2", run_256);
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    failed |= check("AVX-512", run_512);
#endif
  return failed;
}
