#ifndef GONBATCH_ONEDNN_LIBRARY_H
#define GONBATCH_ONEDNN_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

// What is used of oneDNN 3's C interface: https://uxlfoundation.github.io/oneDNN/. Its handles are
// pointers.
enum { GB_DNN_CPU = 1, GB_DNN_IN_ORDER = 1, GB_DNN_F32 = 3, GB_DNN_ANY = 1, GB_DNN_USER_SCRATCHPAD = 1 };
enum { GB_DNN_TRAINING = 64, GB_DNN_DIRECT = 1, GB_DNN_SCRATCHPAD_LAYOUT = 136 };
enum { GB_DNN_MAX_RANK = 12 };

// The CPU runtimes whose memory is plain memory and whose threads are their own: sequential,
// OpenMP, TBB.
enum { GB_DNN_OWN_THREADS = 1 | 2 | 4 };

// The numbers of arguments, and of the queries for their layouts.
enum { GB_DNN_SRC = 1, GB_DNN_DST = 17, GB_DNN_WEIGHTS = 33, GB_DNN_SCRATCHPAD = 80 };
enum { GB_DNN_DIFF_SRC = 129, GB_DNN_DIFF_DST = 145, GB_DNN_DIFF_WEIGHTS = 161 };
enum { GB_DNN_IMPLEMENTATION = 8, GB_DNN_WEIGHTS_LAYOUT = 131, GB_DNN_DIFF_WEIGHTS_LAYOUT = 132 };

typedef int64_t gb_dnn_dims[GB_DNN_MAX_RANK];

typedef struct {
  int argument;
  void *memory;
} gb_dnn_argument;

typedef struct {
  int major, minor, patch;
  const char *hash;
  unsigned cpu_runtime, gpu_runtime;
} gb_dnn_version;

// gb_dnn is the library. Functions that return an int return 0 if they succeed.
extern struct gb_dnn_library {
  void *handle, *engine, *stream, *attributes;
  const gb_dnn_version *(*version)(void);
  int (*engine_create)(void **engine, int kind, size_t index);
  int (*stream_create)(void **stream, void *engine, unsigned flags);
  int (*stream_wait)(void *stream);
  int (*attributes_create)(void **attributes);
  int (*attributes_set_scratchpad)(void *attributes, int mode);
  int (*layout_with_strides)(void **layout, int rank, const gb_dnn_dims dims, int type, const gb_dnn_dims strides);
  int (*layout_with_tag)(void **layout, int rank, const gb_dnn_dims dims, int type, int tag);
  int (*layout_destroy)(void *layout);
  int (*layout_equal)(const void *a, const void *b);
  size_t (*layout_size)(const void *layout);
  int (*forward)(void **plan, void *engine, int kind, int algorithm, const void *src, const void *weights,
                 const void *bias, const void *dst, const gb_dnn_dims strides, const gb_dnn_dims dilations,
                 const gb_dnn_dims before, const gb_dnn_dims after, void *attributes);
  int (*backward_data)(void **plan, void *engine, int algorithm, const void *diff_src, const void *weights,
                       const void *diff_dst, const gb_dnn_dims strides, const gb_dnn_dims dilations,
                       const gb_dnn_dims before, const gb_dnn_dims after, void *forward, void *attributes);
  int (*backward_weights)(void **plan, void *engine, int algorithm, const void *src, const void *diff_weights,
                          const void *diff_bias, const void *diff_dst, const gb_dnn_dims strides,
                          const gb_dnn_dims dilations, const gb_dnn_dims before, const gb_dnn_dims after,
                          void *forward, void *attributes);
  int (*reorder)(void **plan, const void *from, void *from_engine, const void *to, void *to_engine, void *attributes);
  const void *(*layout_of)(void *plan, int query, int index);
  int (*query)(const void *plan, int what, int index, void *result);
  int (*plan_destroy)(void *plan);
  int (*primitive_create)(void **primitive, void *plan);
  int (*primitive_destroy)(void *primitive);
  int (*primitive_execute)(void *primitive, void *stream, int count, const gb_dnn_argument *arguments);
  int (*memory_create)(void **memory, const void *layout, void *engine, void *data);
  int (*memory_set_data)(void *memory, void *data);
  int (*memory_destroy)(void *memory);
  int (*sgemm)(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
               int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
  // OpenMP's, or NULL.
  void (*set_threads)(int n);
  void (*set_dynamic)(int on);
  int (*thread_limit)(void);
  int most_threads;  // 0: no limit.
  int threads;       // Those of the call that has the lock: later ones may use other CPUs.
  int spins;         // Threads that wait keep their CPU for long.
} gb_dnn;

// gb_dnn_sleep_while_waiting makes OpenMP's threads sleep while they wait, if it is called before
// gb_dnn_open: OpenMP reads its variables when it is loaded. A policy of the user's own remains.
void gb_dnn_sleep_while_waiting(void);

// gb_dnn_open opens the library, once in a process. It returns 0, or 1 and a text.
int gb_dnn_open(const char *path, char *version, size_t version_size, char *error, size_t error_size);

// gb_dnn_threads returns how many threads compute for the calling thread: as many as it may use
// CPUs, but no more than the limit, nor than OMP_THREAD_LIMIT.
int gb_dnn_threads(void);

// gb_dnn_lock makes the calling thread the only one that computes, with that many threads.
void gb_dnn_lock(void);
void gb_dnn_unlock(void);

// gb_dnn_alone makes oneDNN compute on one thread for the calling thread, which needs no lock.
void gb_dnn_alone(void);

// gb_dnn_parts returns into how many parts to cut a kernel of that many rows: one for each thread,
// or 1 if oneDNN should divide the work itself, because there are few rows. From then on, oneDNN
// computes on one thread for the caller, which has the lock.
int gb_dnn_parts(int64_t rows);

// gb_dnn_own_parts is gb_dnn_parts for a kernel of this package, which nobody else divides.
int gb_dnn_own_parts(int64_t rows);

// gb_dnn_part returns the row where a part begins. It ends where the next one begins.
int64_t gb_dnn_part(int64_t rows, int parts, int part);

enum { GB_DNN_MOST_PARTS = 256 };

// A gb_dnn_task computes a part of a kernel on one thread. It returns 0 if it succeeds.
typedef int (*gb_dnn_task)(const void *kernel, int part);

// gb_dnn_together computes the parts side by side: part i on thread i of the team, the first on the
// calling thread, which has the lock. It returns 0 if all succeed.
int gb_dnn_together(gb_dnn_task task, const void *kernel, int parts);

// The kernels. They return 0, or 1 and a text. With NULL for `out`, they only prepare: 1 then means
// that XLA should compute it. pjrt/kernels.h describes their forms.
int gb_dnn_convolution(const int64_t *form, int64_t length, const float *a, const float *b, float *out, char *error,
                       size_t error_size);
int gb_dnn_product(const int64_t *form, int64_t length, const float *a, const float *b, float *out, char *error,
                   size_t error_size);
int gb_dnn_columns(const int64_t *form, int64_t length, const float *x, const float *unused, float *out, char *error,
                   size_t error_size);

// gb_dnn_adam_update is gb_adam_update of pjrt/kernels.h.
typedef struct {
  int64_t count;
  const float *weight, *moment1, *moment2, *gradient;
  float *new_weight, *new_moment1, *new_moment2;
  float keep1, add1, debias1, keep2, add2, debias2, epsilon, rate, decay, scale;
} gb_dnn_adam_update;

void gb_dnn_adam(const gb_dnn_adam_update *update);

// gb_dnn_adam_row updates `count` elements from `begin` on, by their gradient. It runs on the
// calling thread.
void gb_dnn_adam_row(const gb_dnn_adam_update *update, int64_t begin, const float *gradient, int64_t count);

// gb_dnn_trained_product is an update by a gradient that is a product, of the same form. The
// update's gradient isn't used.
int gb_dnn_trained_product(const int64_t *form, int64_t length, const float *a, const float *b,
                           const gb_dnn_adam_update *update, char *error, size_t error_size);

#endif
