// Compiles a program by a PJRT plugin for a topology of devices, without a client.
#include "aot.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../pjrt/abi.h"

static const gb_pjrt_api *api;

// CALL calls the plugin's function of that index, which takes a struct and returns an error.
#define CALL(index, args) (((gb_pjrt_error * (*)(void *)) api->function[index])(args))

// failed reports whether a call has failed, and writes why.
static int failed(gb_pjrt_error *err, const char *what, char *text, size_t size) {
  if (err == NULL) return 0;
  gb_pjrt_error_message_args message = {.struct_size = sizeof message, .error = err};
  ((void (*)(void *))api->function[GB_PJRT_ERROR_MESSAGE])(&message);
  snprintf(text, size, "%s: %.*s", what, (int)message.message_size, message.message);
  gb_pjrt_error_destroy_args destroy = {.struct_size = sizeof destroy, .error = err};
  ((void (*)(void *))api->function[GB_PJRT_ERROR_DESTROY])(&destroy);
  return 1;
}

int gb_aot_open(const char *path, char *error, size_t error_size) {
  if (api != NULL) return 0;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    snprintf(error, error_size, "%s", dlerror());
    return 1;
  }
  const gb_pjrt_api *(*get_api)(void) = (const gb_pjrt_api *(*)(void))dlsym(handle, "GetPjrtApi");
  if (get_api == NULL || (api = get_api()) == NULL ||
      api->struct_size < offsetof(gb_pjrt_api, function) + (GB_PJRT_EXECUTABLE_MEMORY + 1) * sizeof(void *)) {
    snprintf(error, error_size, "it is no PJRT plugin that can compile without a device");
    api = NULL;
    return 1;
  }
  gb_pjrt_initialize_args init = {.struct_size = sizeof init};
  return failed(CALL(GB_PJRT_PLUGIN_INITIALIZE, &init), "initialize", error, error_size);
}

static gb_pjrt_named_value text_option(const char *name, const char *value) {
  return (gb_pjrt_named_value){.struct_size = sizeof(gb_pjrt_named_value), .name = name, .name_size = strlen(name),
                               .type = GB_PJRT_STRING, .string_value = value, .value_size = strlen(value)};
}

static int read_memory(void *executable, gb_aot_memory *m, char *error, size_t error_size) {
  gb_pjrt_memory_args args = {.struct_size = sizeof args, .executable = executable};
  if (failed(CALL(GB_PJRT_EXECUTABLE_MEMORY, &args), "memory", error, error_size)) return 1;
  *m = (gb_aot_memory){args.code, args.arguments, args.outputs, args.aliased, args.temporary};
  return 0;
}

static int read_program(void *executable, gb_aot_result *result, char *error, size_t error_size) {
  gb_pjrt_program program = {.struct_size = sizeof program};
  gb_pjrt_optimized_args args = {.struct_size = sizeof args, .executable = executable, .program = &program};
  if (failed(CALL(GB_PJRT_EXECUTABLE_OPTIMIZED, &args), "size of the scheduled program", error, error_size)) return 1;
  program.code = malloc(program.code_size);
  if (program.code == NULL) abort();
  if (failed(CALL(GB_PJRT_EXECUTABLE_OPTIMIZED, &args), "scheduled program", error, error_size)) {
    free(program.code);
    return 1;
  }
  result->program = program.code;
  result->program_size = program.code_size;
  return 0;
}

static int compile(void *topology, const gb_aot_request *request, gb_aot_result *result, char *error,
                   size_t error_size) {
  gb_pjrt_program program = {.struct_size = sizeof program, .code = (char *)request->program,
                             .code_size = request->program_size, .format = "mlir", .format_size = 4};
  gb_pjrt_topology_compile_args args = {.struct_size = sizeof args, .topology = topology, .program = &program,
                                        .options = request->options, .options_size = request->options_size};
  if (failed(CALL(GB_PJRT_COMPILE, &args), "compile", error, error_size)) return 1;
  int bad = read_memory(args.executable, &result->memory, error, error_size) ||
            read_program(args.executable, result, error, error_size);
  gb_pjrt_handle_args destroy = {.struct_size = sizeof destroy, .handle = args.executable};
  char text[1];
  failed(CALL(GB_PJRT_EXECUTABLE_DESTROY, &destroy), "destroy", text, sizeof text);
  return bad;
}

int gb_aot_compile(const gb_aot_request *request, gb_aot_result *result, char *error, size_t error_size) {
  gb_pjrt_named_value options[] = {text_option("target_config", request->target_config),
                                   text_option("topology", request->topology)};
  gb_pjrt_topology_args create = {.struct_size = sizeof create, .name = "cuda", .name_size = 4, .options = options,
                                  .num_options = 2};
  if (failed(CALL(GB_PJRT_TOPOLOGY_CREATE, &create), "topology", error, error_size)) return 1;
  int bad = compile(create.topology, request, result, error, error_size);
  gb_pjrt_handle_args destroy = {.struct_size = sizeof destroy, .handle = create.topology};
  char text[1];
  failed(CALL(GB_PJRT_TOPOLOGY_DESTROY, &destroy), "destroy", text, sizeof text);
  return bad;
}
