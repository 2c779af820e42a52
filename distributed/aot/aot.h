#ifndef GONBATCH_AOT_H
#define GONBATCH_AOT_H

#include <stddef.h>
#include <stdint.h>

// gb_aot_memory is what a compiled program takes of a device's memory, in bytes.
typedef struct {
  int64_t code, arguments, outputs, aliased, temporary;
} gb_aot_memory;

typedef struct {
  const char *target_config;  // Of XLA, as text.
  const char *topology;       // "1x2x4": partitions, hosts, devices of each.
  const char *program;        // StableHLO.
  size_t program_size;
  const char *options;  // A CompileOptionsProto.
  size_t options_size;
} gb_aot_request;

typedef struct {
  gb_aot_memory memory;
  char *program;  // The scheduled HLO, in malloc's memory.
  size_t program_size;
} gb_aot_result;

// gb_aot_open opens the plugin; it returns 0, or non-zero and a text in `error`.
int gb_aot_open(const char *path, char *error, size_t error_size);

// gb_aot_compile compiles a program for devices that need not be there.
int gb_aot_compile(const gb_aot_request *request, gb_aot_result *result, char *error, size_t error_size);

#endif
