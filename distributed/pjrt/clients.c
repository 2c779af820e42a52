// Intercepts the creation of clients and the execution of programs between go-xla and the plugin,
// for jobs in which XLA itself connects the ranks.
#include "clients.h"

#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "plugin.h"

// has_option reports whether a client is created with an option.
static int has_option(const gb_pjrt_client_create_args *args, const char *name) {
  for (size_t i = 0; i < args->num_options; i++)
    if (args->options[i].name_size == strlen(name) && memcmp(args->options[i].name, name, strlen(name)) == 0) return 1;
  return 0;
}

// XLA leaves the results uninitialised. Go may not write a pointer over what isn't one: its garbage
// collector looks at the old value too (see the documentation of cgo).
static gb_pjrt_error *get(gb_pjrt_key_value_get_args *args) {
  args->value = NULL;
  args->value_size = 0;
  args->delete_value = gb_free_value;
  return gonbatchKeyValueGet(args);
}

static gb_pjrt_error *try_get(gb_pjrt_key_value_try_get_args *args) {
  args->value = NULL;
  args->value_size = 0;
  args->delete_value = gb_free_value;
  return gonbatchKeyValueTryGet(args);
}

static gb_pjrt_error *create(gb_pjrt_client_create_args *args) {
  if (!has_option(args, "num_nodes")) return GB_CALL(GB_PJRT_CLIENT_CREATE, args);
  if (args->struct_size < sizeof *args) return gb_error(strdup("gonbatch: go-xla's PJRT is too old for clients of several processes"));
  args->get = get;
  args->try_get = try_get;
  args->put = gonbatchKeyValuePut;
  gb_pjrt_error *err = GB_CALL(GB_PJRT_CLIENT_CREATE, args);
  if (err != NULL) return err;
  char *failure = gonbatchClientCreated(args->client);
  if (failure == NULL) return NULL;
  gb_pjrt_handle_args destroy = {.struct_size = sizeof destroy, .handle = args->client};
  gb_refused(GB_CALL(GB_PJRT_CLIENT_DESTROY, &destroy));
  args->client = NULL;
  return gb_error(failure);
}

static gb_pjrt_error *destroy_executable(gb_pjrt_handle_args *args) {
  gonbatchProgramEnded(args->handle);
  return GB_CALL(GB_PJRT_LOADED_EXECUTABLE_DESTROY, args);
}

void gb_clients_join(void) {
  gb_plugin_replace(GB_PJRT_CLIENT_CREATE, (void *)create);
  gb_plugin_replace(GB_PJRT_LOADED_EXECUTABLE_EXECUTE, (void *)gonbatchExecute);
  gb_plugin_replace(GB_PJRT_LOADED_EXECUTABLE_DESTROY, (void *)destroy_executable);
}

// run_counted is execute for a process that only pretends to have other ranks.
static gb_pjrt_error *run_counted(gb_pjrt_execute_args *args) {
  gonbatchRuns(args->executable);
  return GB_CALL(GB_PJRT_LOADED_EXECUTABLE_EXECUTE, args);
}

void gb_clients_pretend(void) { gb_plugin_replace(GB_PJRT_LOADED_EXECUTABLE_EXECUTE, (void *)run_counted); }

int gb_client_devices(void *client, int64_t *ids, int *processes, int max) {
  gb_pjrt_addressable_devices_args devices = {.struct_size = sizeof devices, .client = client};
  if (gb_refused(GB_CALL(GB_PJRT_CLIENT_DEVICES, &devices))) return -1;
  for (size_t i = 0; i < devices.num_devices && i < (size_t)max; i++) {
    gb_pjrt_part_args get = {.struct_size = sizeof get, .of = devices.devices[i]};
    if (gb_refused(GB_CALL(GB_PJRT_DEVICE_GET_DESCRIPTION, &get))) return -1;
    gb_pjrt_description_number_args id = {.struct_size = sizeof id, .description = get.part};
    gb_pjrt_description_number_args process = id;
    if (gb_refused(GB_CALL(GB_PJRT_DEVICE_DESCRIPTION_ID, &id))) return -1;
    if (gb_refused(GB_CALL(GB_PJRT_DEVICE_DESCRIPTION_PROCESS_INDEX, &process))) return -1;
    ids[i] = id.number;
    processes[i] = process.number;
  }
  return (int)devices.num_devices;
}

int gb_client_memory(void *client, int64_t *peak, int64_t *limit) {
  gb_pjrt_addressable_devices_args devices = {.struct_size = sizeof devices, .client = client};
  if (gb_refused(GB_CALL(GB_PJRT_CLIENT_ADDRESSABLE_DEVICES, &devices)) || devices.num_devices == 0) return 0;
  gb_pjrt_memory_stats_args stats = {.struct_size = sizeof stats, .device = devices.devices[0]};
  if (gb_refused(GB_CALL(GB_PJRT_DEVICE_MEMORY_STATS, &stats)) || !stats.peak_in_use.is_set || !stats.limit.is_set) return 0;
  *peak = stats.peak_in_use.value;
  *limit = stats.limit.value;
  return 1;
}

gb_pjrt_error *gb_callback_failed(gb_pjrt_callback_error *make, int code, const char *text, size_t size) {
  return (*make)(code, text, size);
}

void gb_free_value(char *value) { free(value); }

gb_pjrt_error *gb_execute(gb_pjrt_execute_args *args, char *failure, size_t failure_size) {
  *failure = 0;
  gb_pjrt_error *err = GB_CALL(GB_PJRT_LOADED_EXECUTABLE_EXECUTE, args);
  if (err != NULL) {
    gb_error_read(err, failure, failure_size);
    return err;
  }
  for (size_t i = 0; args->complete_events != NULL && i < args->num_devices; i++) {
    gb_pjrt_handle_args await = {.struct_size = sizeof await, .handle = args->complete_events[i]};
    gb_pjrt_error *late = GB_CALL(GB_PJRT_EVENT_AWAIT, &await);
    if (late != NULL) gb_error_take(late, failure, failure_size);  // The next to await the event gets it too.
  }
  return NULL;
}
