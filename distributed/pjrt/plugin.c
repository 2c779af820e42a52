// Loads a PJRT plugin, and intercepts compilation, the beginning of programs and the functions that
// read errors between go-xla and the plugin.
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "abi.h"
#include "flight.h"
#include "keep.h"

static const gb_pjrt_api *original;  // The plugin's own table.
static gb_pjrt_api *wrapped;         // Its copy, with our functions.

void *gb_plugin_function(int index) { return original->function[index]; }

void gb_plugin_replace(int index, void *function) { wrapped->function[index] = function; }

// To go-xla, our errors look like the plugin's, because the functions that read errors are also
// ours.
static const char own_tag;

struct gb_pjrt_error {
  const char *tag;  // &own_tag. The first word of the plugin's errors is different.
  char *text;
};

static int is_own(const gb_pjrt_error *err) { return err != NULL && err->tag == &own_tag; }

gb_pjrt_error *gb_error(char *text) {
  gb_pjrt_error *err = malloc(sizeof *err);
  if (err == NULL) abort();
  *err = (gb_pjrt_error){.tag = &own_tag, .text = text};
  return err;
}

static void error_destroy(gb_pjrt_error_destroy_args *args) {
  if (!is_own(args->error)) {
    ((void (*)(gb_pjrt_error_destroy_args *))original->function[GB_PJRT_ERROR_DESTROY])(args);
    return;
  }
  free(args->error->text);
  free(args->error);
}

static void error_message(gb_pjrt_error_message_args *args) {
  if (!is_own(args->error)) {
    ((void (*)(gb_pjrt_error_message_args *))original->function[GB_PJRT_ERROR_MESSAGE])(args);
    return;
  }
  args->message = args->error->text;
  args->message_size = strlen(args->error->text);
}

static gb_pjrt_error *error_code(gb_pjrt_error_code_args *args) {
  if (!is_own(args->error)) return GB_CALL(GB_PJRT_ERROR_GET_CODE, args);
  args->code = GB_PJRT_FAILED_PRECONDITION;
  return NULL;
}

static gb_pjrt_error *compile(gb_pjrt_compile_args *args) {
  const gb_pjrt_program *program = args->program;
  if (program == NULL || program->format_size != 4 || memcmp(program->format, "mlir", 4) != 0) return gb_compile(args);

  size_t size = 0;
  char *failure = NULL;
  char *code = gonbatchRewrite(program->code, program->code_size, &size, &failure);
  if (failure != NULL) return gb_error(failure);
  if (code == NULL) return gonbatchCompile(args);  // Nothing to rewrite.
  gb_pjrt_program rewritten = *program;
  rewritten.code = code;
  rewritten.code_size = size;
  args->program = &rewritten;
  gb_pjrt_error *err = gonbatchCompile(args);
  args->program = program;
  free(code);
  return err;
}

static gb_pjrt_error *execute(gb_pjrt_execute_args *args) {
  gb_flight_next();
  return GB_CALL(GB_PJRT_LOADED_EXECUTABLE_EXECUTE, args);
}

const gb_pjrt_api *gb_plugin_load(const char *path, char *error, size_t error_size) {
  void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (handle == NULL) {
    snprintf(error, error_size, "%s", dlerror());
    return NULL;
  }
  const gb_pjrt_api *(*get_api)(void) = (const gb_pjrt_api *(*)(void))dlsym(handle, "GetPjrtApi");
  if (get_api == NULL) {
    snprintf(error, error_size, "it is not a PJRT plugin: no symbol GetPjrtApi");
    return NULL;
  }
  original = get_api();
  size_t needed = offsetof(gb_pjrt_api, function) + (GB_PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD + 1) * sizeof(void *);
  if (original == NULL || original->struct_size < needed) {
    snprintf(error, error_size, "its PJRT API table is too short");
    return NULL;
  }
  wrapped = malloc(original->struct_size);
  memcpy(wrapped, original, original->struct_size);
  wrapped->function[GB_PJRT_ERROR_DESTROY] = (void *)error_destroy;
  wrapped->function[GB_PJRT_ERROR_MESSAGE] = (void *)error_message;
  wrapped->function[GB_PJRT_ERROR_GET_CODE] = (void *)error_code;
  wrapped->function[GB_PJRT_CLIENT_COMPILE] = (void *)compile;
  wrapped->function[GB_PJRT_LOADED_EXECUTABLE_EXECUTE] = (void *)execute;
  return wrapped;
}

static const gb_pjrt_ffi_extension *find_ffi_extension(void) {
  for (gb_pjrt_extension *e = original->extension_start; e != NULL; e = e->next)
    if (e->type == GB_PJRT_EXTENSION_FFI) return (const gb_pjrt_ffi_extension *)e;
  return NULL;
}

void gb_error_read(gb_pjrt_error *err, char *text, size_t size) {
  gb_pjrt_error_message_args message = {.struct_size = sizeof message, .error = err};
  error_message(&message);
  snprintf(text, size, "%.*s", (int)message.message_size, message.message);
}

void gb_error_take(gb_pjrt_error *err, char *text, size_t size) {
  gb_error_read(err, text, size);
  gb_pjrt_error_destroy_args destroy = {.struct_size = sizeof destroy, .error = err};
  error_destroy(&destroy);
}

int gb_refused(gb_pjrt_error *err) {
  char text[1];
  if (err != NULL) gb_error_take(err, text, sizeof text);
  return err != NULL;
}

int gb_plugin_register(const char *target, void *handler, char *error, size_t error_size) {
  static const char platform[] = "Host";  // XLA's name of the CPU's memory.
  const gb_pjrt_ffi_extension *ffi = find_ffi_extension();
  if (ffi == NULL || ffi->register_handler == NULL) {
    snprintf(error, error_size, "it lacks the FFI extension (PJRT extension type %d)", GB_PJRT_EXTENSION_FFI);
    return 1;
  }
  gb_pjrt_register_handler_args args = {
      .struct_size = sizeof args,
      .target_name = target,
      .target_name_size = strlen(target),
      .handler = handler,
      .platform_name = platform,
      .platform_name_size = strlen(platform),
  };
  gb_pjrt_error *err = ffi->register_handler(&args);
  if (err == NULL) return 0;
  gb_error_take(err, error, error_size);
  return 1;
}
