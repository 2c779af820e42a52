#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const PJRT_Api *cpu;

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void) {
  static PJRT_Api *api;
  if (api != NULL) return api;
  void *handle = dlopen(CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "testplugin: %s\n", dlerror());
    abort();
  }
  const PJRT_Api *(*get)(void) = (const PJRT_Api *(*)(void))dlsym(handle, "GetPjrtApi");
  cpu = get();
  api = malloc(cpu->struct_size);
  memcpy(api, cpu, cpu->struct_size);
  wrap_errors(api);
  wrap_clients(api);
  wrap_devices(api);
  wrap_programs(api);
  return api;
}
