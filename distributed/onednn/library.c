// Opens oneDNN at run time, without its headers.
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

struct gb_dnn_library gb_dnn;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static const struct {
  void *field;
  const char *name;
} symbols[] = {
    {&gb_dnn.version, "dnnl_version"},
    {&gb_dnn.engine_create, "dnnl_engine_create"},
    {&gb_dnn.stream_create, "dnnl_stream_create"},
    {&gb_dnn.stream_wait, "dnnl_stream_wait"},
    {&gb_dnn.attributes_create, "dnnl_primitive_attr_create"},
    {&gb_dnn.attributes_set_scratchpad, "dnnl_primitive_attr_set_scratchpad_mode"},
    {&gb_dnn.layout_with_strides, "dnnl_memory_desc_create_with_strides"},
    {&gb_dnn.layout_with_tag, "dnnl_memory_desc_create_with_tag"},
    {&gb_dnn.layout_destroy, "dnnl_memory_desc_destroy"},
    {&gb_dnn.layout_equal, "dnnl_memory_desc_equal"},
    {&gb_dnn.layout_size, "dnnl_memory_desc_get_size"},
    {&gb_dnn.forward, "dnnl_convolution_forward_primitive_desc_create"},
    {&gb_dnn.backward_data, "dnnl_convolution_backward_data_primitive_desc_create"},
    {&gb_dnn.backward_weights, "dnnl_convolution_backward_weights_primitive_desc_create"},
    {&gb_dnn.reorder, "dnnl_reorder_primitive_desc_create"},
    {&gb_dnn.layout_of, "dnnl_primitive_desc_query_md"},
    {&gb_dnn.query, "dnnl_primitive_desc_query"},
    {&gb_dnn.plan_destroy, "dnnl_primitive_desc_destroy"},
    {&gb_dnn.primitive_create, "dnnl_primitive_create"},
    {&gb_dnn.primitive_destroy, "dnnl_primitive_destroy"},
    {&gb_dnn.primitive_execute, "dnnl_primitive_execute"},
    {&gb_dnn.memory_create, "dnnl_memory_create"},
    {&gb_dnn.memory_set_data, "dnnl_memory_set_data_handle"},
    {&gb_dnn.memory_destroy, "dnnl_memory_destroy"},
    {&gb_dnn.sgemm, "dnnl_sgemm"},
};

// find_symbols returns the first missing name, or NULL. A library of version 2 lacks some.
static const char *find_symbols(void) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    if ((*(void **)symbols[i].field = dlsym(gb_dnn.handle, symbols[i].name)) == NULL) return symbols[i].name;
  *(void **)&gb_dnn.set_threads = dlsym(gb_dnn.handle, "omp_set_num_threads");
  *(void **)&gb_dnn.set_dynamic = dlsym(gb_dnn.handle, "omp_set_dynamic");
  *(void **)&gb_dnn.thread_limit = dlsym(gb_dnn.handle, "omp_get_thread_limit");
  return NULL;
}

// begin creates what all primitives share. They take their temporary memory from us, so that each
// thread can run them.
static int begin(void) {
  return gb_dnn.engine_create(&gb_dnn.engine, GB_DNN_CPU, 0) ||
         gb_dnn.stream_create(&gb_dnn.stream, gb_dnn.engine, GB_DNN_IN_ORDER) ||
         gb_dnn.attributes_create(&gb_dnn.attributes) ||
         gb_dnn.attributes_set_scratchpad(gb_dnn.attributes, GB_DNN_USER_SCRATCHPAD);
}

// obey_policy makes our threads keep their CPU while they wait, if the user says so.
static void obey_policy(void) {
  const char *policy = getenv("OMP_WAIT_POLICY");
  gb_dnn.spins = policy != NULL && strcasecmp(policy, "active") == 0;
}

void gb_dnn_sleep_while_waiting(void) { setenv("OMP_WAIT_POLICY", "passive", 0); }

int gb_dnn_open(const char *path, char *version, size_t version_size, char *error, size_t error_size) {
  gb_dnn.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (gb_dnn.handle == NULL) {
    snprintf(error, error_size, "%s", dlerror());
    return 1;
  }
  const char *missing = find_symbols();
  if (missing != NULL) {
    snprintf(error, error_size, "%s is not oneDNN 3: no symbol %s", path, missing);
  } else if (gb_dnn.version()->major != 3) {
    snprintf(error, error_size, "%s is oneDNN %d, not 3", path, gb_dnn.version()->major);
  } else if ((gb_dnn.version()->cpu_runtime & GB_DNN_OWN_THREADS) == 0) {
    snprintf(error, error_size, "%s was built for SYCL or for its caller's threads (runtime %u), not for OpenMP or TBB",
             path, gb_dnn.version()->cpu_runtime);
  } else if (begin()) {
    snprintf(error, error_size, "%s: it can't use this CPU", path);
  } else {
    obey_policy();
    const gb_dnn_version *v = gb_dnn.version();
    snprintf(version, version_size, "%d.%d.%d", v->major, v->minor, v->patch);
    return 0;
  }
  dlclose(gb_dnn.handle);
  return 1;
}

static int smaller(int n, int limit) { return limit > 0 && limit < n ? limit : n; }

int gb_dnn_threads(void) {
  // The C library's function may have another answer for XLA (pjrt/cpus.c).
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  int n = syscall(SYS_sched_getaffinity, 0, sizeof cpus, &cpus) > 0 ? CPU_COUNT(&cpus) : 1;
  if (gb_dnn.thread_limit != NULL) n = smaller(n, gb_dnn.thread_limit());
  return smaller(n, gb_dnn.most_threads);
}

// With fewer threads than oneDNN has asked for, part of a result would be missing. OpenMP would
// take fewer than it was told to if OMP_DYNAMIC is set, and never takes more than OMP_THREAD_LIMIT.
void gb_dnn_lock(void) {
  pthread_mutex_lock(&mutex);
  if (gb_dnn.set_dynamic != NULL) gb_dnn.set_dynamic(0);
  gb_dnn.threads = gb_dnn_threads();
  if (gb_dnn.set_threads != NULL) gb_dnn.set_threads(gb_dnn.threads);
}

void gb_dnn_unlock(void) { pthread_mutex_unlock(&mutex); }

void gb_dnn_alone(void) {
  if (gb_dnn.set_dynamic != NULL) gb_dnn.set_dynamic(0);
  if (gb_dnn.set_threads != NULL) gb_dnn.set_threads(1);
}
