// Serializes and loads compiled programs, through the plugin's own functions.
#define _GNU_SOURCE
#include "keep.h"

#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

gb_pjrt_error *gb_compile(gb_pjrt_compile_args *args) { return GB_CALL(GB_PJRT_CLIENT_COMPILE, args); }

int gb_serialize(void *loaded_executable, gb_pjrt_serialize_args *args) {
  gb_pjrt_part_args get = {.struct_size = sizeof get, .of = loaded_executable};
  if (gb_refused(GB_CALL(GB_PJRT_LOADED_EXECUTABLE_GET_EXECUTABLE, &get))) return 0;
  *args = (gb_pjrt_serialize_args){.struct_size = sizeof *args, .executable = get.part};
  int done = !gb_refused(GB_CALL(GB_PJRT_EXECUTABLE_SERIALIZE, args));
  gb_pjrt_handle_args destroy = {.struct_size = sizeof destroy, .handle = get.part};
  gb_refused(GB_CALL(GB_PJRT_EXECUTABLE_DESTROY, &destroy));
  return done;
}

void gb_serialize_done(gb_pjrt_serialize_args *args) {
  if (args->delete_owner != NULL) args->delete_owner(args->owner);
}

void *gb_load(void *client, const void *bytes, size_t size) {
  gb_pjrt_deserialize_args args = {.struct_size = sizeof args, .client = client, .bytes = bytes, .bytes_size = size};
  return gb_refused(GB_CALL(GB_PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD, &args)) ? NULL : args.loaded_executable;
}

static int add_text(FILE *to, int index, void *of) {
  gb_pjrt_text_args args = {.struct_size = sizeof args, .of = of};
  if (gb_refused(GB_CALL(index, &args))) return 0;
  fprintf(to, "%.*s\n", (int)args.text_size, args.text);
  return 1;
}

static int add_kind(FILE *to, void *device) {
  gb_pjrt_part_args get = {.struct_size = sizeof get, .of = device};
  return !gb_refused(GB_CALL(GB_PJRT_DEVICE_GET_DESCRIPTION, &get)) && add_text(to, GB_PJRT_DEVICE_DESCRIPTION_KIND, get.part);
}

static int describe(FILE *to, void *client) {
  gb_pjrt_addressable_devices_args devices = {.struct_size = sizeof devices, .client = client};
  if (!add_text(to, GB_PJRT_CLIENT_PLATFORM_NAME, client) || !add_text(to, GB_PJRT_CLIENT_PLATFORM_VERSION, client)) return 0;
  if (gb_refused(GB_CALL(GB_PJRT_CLIENT_ADDRESSABLE_DEVICES, &devices))) return 0;
  for (size_t i = 0; i < devices.num_devices; i++)
    if (!add_kind(to, devices.devices[i])) return 0;
  return 1;
}

char *gb_describe(void *client) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (to == NULL) abort();
  int known = describe(to, client);
  if (fclose(to) == 0 && known) return text;
  free(text);
  return NULL;
}
