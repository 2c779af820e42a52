// Serializes and loads compiled programs, through the plugin's own functions.
#include "keep.h"

#include <stdio.h>

#include "plugin.h"

// CALL calls the plugin's function with that index, which takes a struct and returns an error.
#define CALL(index, args) (((gb_pjrt_error * (*)(void *)) gb_plugin_function(index))(args))

// refused reports whether a call has failed. The reason doesn't matter: the program is then
// compiled.
static int refused(gb_pjrt_error *err) {
  if (err == NULL) return 0;
  gb_pjrt_error_destroy_args args = {.struct_size = sizeof args, .error = err};
  ((void (*)(gb_pjrt_error_destroy_args *))gb_plugin_function(GB_PJRT_ERROR_DESTROY))(&args);
  return 1;
}

gb_pjrt_error *gb_compile(gb_pjrt_compile_args *args) { return CALL(GB_PJRT_CLIENT_COMPILE, args); }

int gb_serialize(void *loaded_executable, gb_pjrt_serialize_args *args) {
  gb_pjrt_get_executable_args get = {.struct_size = sizeof get, .loaded_executable = loaded_executable};
  if (refused(CALL(GB_PJRT_LOADED_EXECUTABLE_GET_EXECUTABLE, &get))) return 0;
  *args = (gb_pjrt_serialize_args){.struct_size = sizeof *args, .executable = get.executable};
  int done = !refused(CALL(GB_PJRT_EXECUTABLE_SERIALIZE, args));
  gb_pjrt_executable_destroy_args destroy = {.struct_size = sizeof destroy, .executable = get.executable};
  refused(CALL(GB_PJRT_EXECUTABLE_DESTROY, &destroy));
  return done;
}

void gb_serialize_done(gb_pjrt_serialize_args *args) {
  if (args->delete_owner != NULL) args->delete_owner(args->owner);
}

void *gb_load(void *client, const void *bytes, size_t size) {
  gb_pjrt_deserialize_args args = {.struct_size = sizeof args, .client = client, .bytes = bytes, .bytes_size = size};
  return refused(CALL(GB_PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD, &args)) ? NULL : args.loaded_executable;
}

// writer writes a text piece by piece. `full` is set once a piece did not fit.
typedef struct {
  char *text;
  size_t size, used;
  int full;
} writer;

static void add(writer *w, const char *piece, size_t size) {
  int n = snprintf(w->text + w->used, w->size - w->used, "%.*s\n", (int)size, piece);
  if (n < 0 || (size_t)n >= w->size - w->used)
    w->full = 1;
  else
    w->used += (size_t)n;
}

static int add_client_text(writer *w, int index, void *client) {
  gb_pjrt_client_text_args args = {.struct_size = sizeof args, .client = client};
  if (refused(CALL(index, &args))) return 0;
  add(w, args.text, args.text_size);
  return 1;
}

static int add_kind(writer *w, void *device) {
  gb_pjrt_get_description_args get = {.struct_size = sizeof get, .device = device};
  if (refused(CALL(GB_PJRT_DEVICE_GET_DESCRIPTION, &get))) return 0;
  gb_pjrt_description_kind_args kind = {.struct_size = sizeof kind, .description = get.description};
  if (refused(CALL(GB_PJRT_DEVICE_DESCRIPTION_KIND, &kind))) return 0;
  add(w, kind.kind, kind.kind_size);
  return 1;
}

size_t gb_describe(void *client, char *text, size_t size) {
  writer w = {.text = text, .size = size};
  if (!add_client_text(&w, GB_PJRT_CLIENT_PLATFORM_NAME, client)) return 0;
  if (!add_client_text(&w, GB_PJRT_CLIENT_PLATFORM_VERSION, client)) return 0;
  gb_pjrt_addressable_devices_args devices = {.struct_size = sizeof devices, .client = client};
  if (refused(CALL(GB_PJRT_CLIENT_ADDRESSABLE_DEVICES, &devices))) return 0;
  for (size_t i = 0; i < devices.num_devices; i++)
    if (!add_kind(&w, devices.devices[i])) return 0;
  return w.full ? 0 : w.used;
}
