// The part of the PJRT C API that compiles without a client, beside what package pjrt declares. See there.
#ifndef GONBATCH_AOT_ABI_H
#define GONBATCH_AOT_ABI_H

#include "../pjrt/abi.h"

enum {
  GB_PJRT_PLUGIN_INITIALIZE = 3,
  GB_PJRT_EXECUTABLE_OPTIMIZED = 48,
  GB_PJRT_TOPOLOGY_CREATE = 82,
  GB_PJRT_TOPOLOGY_DESTROY = 83,
  GB_PJRT_COMPILE = 89,
  GB_PJRT_EXECUTABLE_MEMORY = 96,
};

enum { GB_PJRT_STRING = 0 };

typedef struct {
  size_t struct_size;
  gb_pjrt_extension *extension_start;
} gb_pjrt_initialize_args;

typedef struct {
  size_t struct_size;
  gb_pjrt_extension *extension_start;
  const char *name;
  size_t name_size;
  const gb_pjrt_named_value *options;
  size_t num_options;
  void *topology;
} gb_pjrt_topology_args;

typedef struct {
  size_t struct_size;
  gb_pjrt_extension *extension_start;
  void *topology;
} gb_pjrt_topology_destroy_args;

typedef struct {
  size_t struct_size;
  gb_pjrt_extension *extension_start;
  const void *topology;
  const gb_pjrt_program *program;
  const char *options;
  size_t options_size;
  void *client;
  void *executable;
} gb_pjrt_topology_compile_args;

typedef struct {
  size_t struct_size;
  gb_pjrt_extension *extension_start;
  void *executable;
  int64_t code, arguments, outputs, aliased, temporary;
  int64_t host[5];  // The same of the host.
  int64_t peak, total, allocated, indefinite, peak_unpadded;
} gb_pjrt_memory_args;

typedef struct {
  size_t struct_size;
  gb_pjrt_extension *extension_start;
  void *executable;
  gb_pjrt_program *program;
} gb_pjrt_optimized_args;

#endif
