// Calls the callbacks as XLA does: struct_size and the output fields are uninitialised.
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

enum { GARBAGE = 0xa5 };

static PJRT_CallbackError make_error = callback_error;

static char *copy(const char *value, size_t size) {
  char *memory = malloc(size + 1);
  if (size > 0) memcpy(memory, value, size);
  memory[size] = 0;
  return memory;
}

PJRT_Error *kv_put(const char *key, const void *value, size_t size) {
  PJRT_KeyValuePutCallback_Args args;
  memset(&args, GARBAGE, sizeof args);
  args.key = key;
  args.key_size = strlen(key);
  args.value = value;
  args.value_size = size;
  args.callback_error = &make_error;
  args.user_arg = me.callbacks.kv_put_user_arg;
  return me.callbacks.kv_put_callback(&args);
}

PJRT_Error *kv_get(const char *key, int milliseconds, char **value, size_t *size) {
  PJRT_KeyValueGetCallback_Args args;
  memset(&args, GARBAGE, sizeof args);
  args.key = key;
  args.key_size = strlen(key);
  args.timeout_in_ms = milliseconds;
  args.callback_error = &make_error;
  args.user_arg = me.callbacks.kv_get_user_arg;
  PJRT_Error *error = me.callbacks.kv_get_callback(&args);
  if (error == NULL) {
    *value = copy(args.value, args.value_size);
    *size = args.value_size;
  }
  args.value_deleter_callback(args.value);
  return error;
}

PJRT_Error *kv_try_get(const char *key) {
  PJRT_KeyValueTryGetCallback_Args args;
  memset(&args, GARBAGE, sizeof args);
  args.key = key;
  args.key_size = strlen(key);
  args.callback_error = &make_error;
  args.user_arg = me.callbacks.kv_try_get_user_arg;
  PJRT_Error *error = me.callbacks.kv_try_get_callback(&args);
  args.value_deleter_callback(args.value);
  return error;
}
