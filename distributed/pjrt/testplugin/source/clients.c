// Creates a client as XLA's GPU plugin does.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

process me = {.rank = 0, .size = 1};

// Those options of XLA's GPU client that are given, with their types.
static const struct {
  const char *name;
  PJRT_NamedValue_Type type;
} known[] = {
    {"preallocate", PJRT_NamedValue_kBool},
    {"visible_devices", PJRT_NamedValue_kInt64List},
    {"node_id", PJRT_NamedValue_kInt64},
    {"num_nodes", PJRT_NamedValue_kInt64},
    {"enable_mock_nccl", PJRT_NamedValue_kBool},
};

static int same(const PJRT_NamedValue *option, const char *name) {
  return option->name_size == strlen(name) && memcmp(option->name, name, option->name_size) == 0;
}

static PJRT_Error *check_option(const PJRT_NamedValue *option) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (same(option, known[i].name))
      return option->type == known[i].type
                 ? NULL
                 : failed(PJRT_Error_Code_INVALID_ARGUMENT, "option %s has type %d, want %d", known[i].name, option->type, known[i].type);
  return failed(PJRT_Error_Code_INVALID_ARGUMENT, "Unexpected option name passed to PJRT_Client_Create: %.*s", (int)option->name_size, option->name);
}

static const PJRT_NamedValue *option(const PJRT_Client_Create_Args *args, const char *name) {
  for (size_t i = 0; i < args->num_options; i++)
    if (same(&args->create_options[i], name)) return &args->create_options[i];
  return NULL;
}

// count_visible returns the number of GPUs that CUDA shows, and entry the name of one of them.
static int count_visible(void) {
  const char *text = getenv("CUDA_VISIBLE_DEVICES");
  if (text == NULL) return 8;
  if (*text == 0) return 0;
  int n = 1;
  for (; *text; text++) n += *text == ',';
  return n;
}

static void entry(int index, char *name, size_t size) {
  const char *text = getenv("CUDA_VISIBLE_DEVICES");
  if (text == NULL) {
    snprintf(name, size, "%d", index);
    return;
  }
  for (; index > 0; index--) text = strchr(text, ',') + 1;
  snprintf(name, size, "%.*s", (int)strcspn(text, ","), text);
}

// choose returns the number of GPUs that this process uses, and the name of the first.
static PJRT_Error *choose(const PJRT_Client_Create_Args *args, int *count, char *gpu, size_t gpu_size) {
  const PJRT_NamedValue *visible = option(args, "visible_devices");
  int all = count_visible(), first = 0;
  *count = all;
  if (visible != NULL) {
    *count = (int)visible->value_size;
    for (size_t i = 0; i < visible->value_size; i++) {
      int64_t index = visible->int64_array_value[i];
      if (index < 0 || index >= all) return failed(PJRT_Error_Code_NOT_FOUND, "No visible GPU device %d of %d", (int)index, all);
    }
    first = *count > 0 ? (int)visible->int64_array_value[0] : 0;
  }
  if (*count == 0) return failed(PJRT_Error_Code_NOT_FOUND, "No visible GPU devices");
  entry(first, gpu, gpu_size);
  return NULL;
}

static PJRT_Error *check(const PJRT_Client_Create_Args *args) {
  for (size_t i = 0; i < args->num_options; i++) {
    PJRT_Error *error = check_option(&args->create_options[i]);
    if (error != NULL) return error;
  }
  const PJRT_NamedValue *id = option(args, "node_id"), *nodes = option(args, "num_nodes");
  me.rank = id == NULL ? 0 : (int)id->int64_value;
  me.size = nodes == NULL ? 1 : (int)nodes->int64_value;
  if (me.size < 1 || me.rank < 0 || me.rank >= me.size)
    return failed(PJRT_Error_Code_INVALID_ARGUMENT, "node_id %d of num_nodes %d", me.rank, me.size);
  const PJRT_NamedValue *mocks = option(args, "enable_mock_nccl");
  me.mocks = mocks != NULL && mocks->bool_value;
  if (me.size > 1 && !me.mocks && (args->kv_get_callback == NULL || args->kv_put_callback == NULL || args->kv_try_get_callback == NULL))
    return failed(PJRT_Error_Code_INVALID_ARGUMENT, "num_nodes is %d, and there is no key-value store", me.size);
  me.callbacks = *args;
  return NULL;
}

static PJRT_Error *create_on_cpu(PJRT_Client_Create_Args *args, int count) {
  static const char name[] = "cpu_device_count";
  PJRT_NamedValue devices = {.struct_size = PJRT_NamedValue_STRUCT_SIZE, .name = name, .name_size = strlen(name), .type = PJRT_NamedValue_kInt64, .int64_value = count, .value_size = 1};
  PJRT_Client_Create_Args create = {.struct_size = PJRT_Client_Create_Args_STRUCT_SIZE, .create_options = &devices, .num_options = 1};
  PJRT_Error *error = cpu->PJRT_Client_Create(&create);
  args->client = create.client;
  return error;
}

// trouble causes the failure that a test requests: TESTPLUGIN_TROUBLE="1 dies" ends process 1.
static PJRT_Error *trouble(void) {
  const char *text = getenv("TESTPLUGIN_TROUBLE");
  if (text == NULL || atoi(text) != me.rank) return NULL;
  if (strstr(text, "dies") != NULL) _exit(9);
  if (strstr(text, "stops") != NULL) raise(SIGSTOP);
  return failed(PJRT_Error_Code_INTERNAL, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
}

static PJRT_Error *create(PJRT_Client_Create_Args *args) {
  int count = 0;
  char gpu[128];
  PJRT_Error *error = check(args);
  if (error == NULL) error = choose(args, &count, gpu, sizeof gpu);
  if (error == NULL) error = trouble();
  if (error == NULL) error = create_on_cpu(args, count);
  if (error == NULL) error = register_collectives();
  if (error == NULL && me.size > 1 && !me.mocks) error = find_others(gpu);
  if (error != NULL) return error;
  PJRT_Client_AddressableDevices_Args mine = {.struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE, .client = args->client};
  error = cpu->PJRT_Client_AddressableDevices(&mine);
  if (error == NULL) make_devices(mine.addressable_devices, (int)mine.num_addressable_devices, gpu);
  return error;
}

static PJRT_Error *platform_name(PJRT_Client_PlatformName_Args *args) {
  args->platform_name = "cuda";
  args->platform_name_size = strlen(args->platform_name);
  return NULL;
}

static PJRT_Error *process_index(PJRT_Client_ProcessIndex_Args *args) {
  args->process_index = me.rank;
  return NULL;
}

void wrap_clients(PJRT_Api *api) {
  api->PJRT_Client_Create = create;
  api->PJRT_Client_PlatformName = platform_name;
  api->PJRT_Client_ProcessIndex = process_index;
}
