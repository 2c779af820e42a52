// deviceless PLUGIN TARGET TOPOLOGY PROGRAM OPTIONS    compiles a program for GPUs that are not here.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt_c_api.h"

static const PJRT_Api *api;

static void check(PJRT_Error *error, const char *what) {
  if (error == NULL) return;
  PJRT_Error_Message_Args m = {.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE, .error = error};
  api->PJRT_Error_Message(&m);
  fprintf(stderr, "%s: %.*s\n", what, (int)m.message_size, m.message);
  exit(1);
}

static char *read_file(const char *name, size_t *size) {
  FILE *f = fopen(name, "rb");
  if (f == NULL) {
    perror(name);
    exit(1);
  }
  char *text = NULL;
  *size = 0;
  for (size_t n = 1; n > 0; *size += n) {
    text = realloc(text, *size + 65537);
    n = fread(text + *size, 1, 65536, f);
  }
  text[*size] = 0;
  fclose(f);
  return text;
}

static PJRT_NamedValue option(const char *name, const char *value) {
  return (PJRT_NamedValue){.struct_size = PJRT_NamedValue_STRUCT_SIZE, .name = name, .name_size = strlen(name), .type = PJRT_NamedValue_kString, .string_value = value, .value_size = strlen(value)};
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  api = ((const PJRT_Api *(*)(void))dlsym(handle, "GetPjrtApi"))();
  PJRT_Plugin_Initialize_Args initialize = {.struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE};
  check(api->PJRT_Plugin_Initialize(&initialize), "initialize");

  size_t size = 0;
  PJRT_NamedValue options[] = {option("target_config", read_file(argv[2], &size)), option("topology", argv[3])};
  PJRT_TopologyDescription_Create_Args topology = {.struct_size = PJRT_TopologyDescription_Create_Args_STRUCT_SIZE, .topology_name = "cuda", .topology_name_size = 4, .create_options = options, .num_options = 2};
  check(api->PJRT_TopologyDescription_Create(&topology), "topology");

  PJRT_Program program = {.struct_size = PJRT_Program_STRUCT_SIZE, .format = "mlir", .format_size = 4};
  program.code = read_file(argv[4], &program.code_size);
  PJRT_Compile_Args compile = {.struct_size = PJRT_Compile_Args_STRUCT_SIZE, .topology = topology.topology, .program = &program};
  compile.compile_options = read_file(argv[5], &compile.compile_options_size);
  check(api->PJRT_Compile(&compile), "compile");
  return 0;
}
