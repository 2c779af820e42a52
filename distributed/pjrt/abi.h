// The parts of two binary interfaces that gonbatch needs, declared after their published layouts:
//
//   PJRT C API   https://github.com/openxla/xla/blob/main/xla/pjrt/c/pjrt_c_api.h
//   XLA FFI API  https://github.com/openxla/xla/blob/main/xla/ffi/api/c_api.h
//
// Both only ever append fields, and store the size of each struct in it, so a prefix of each struct
// is enough. abi_test.go compares the PJRT part with the header that go-xla ships.
#ifndef GONBATCH_PJRT_ABI_H
#define GONBATCH_PJRT_ABI_H

#include <stddef.h>
#include <stdint.h>

// ---- PJRT ----

enum { GB_PJRT_EXTENSION_FFI = 5 };

typedef struct gb_pjrt_extension {
  size_t struct_size;
  int type;
  struct gb_pjrt_extension *next;
} gb_pjrt_extension;

// GB_PJRT_HEAD begins each struct.
#define GB_PJRT_HEAD   \
  size_t struct_size; \
  gb_pjrt_extension *extension_start;

typedef struct {
  GB_PJRT_HEAD
  int major_version;
  int minor_version;
} gb_pjrt_version;

typedef struct gb_pjrt_error gb_pjrt_error;

// The indices of the functions that gonbatch calls in the function table of PJRT_Api.
enum {
  GB_PJRT_ERROR_DESTROY = 0,
  GB_PJRT_ERROR_MESSAGE = 1,
  GB_PJRT_ERROR_GET_CODE = 2,
  GB_PJRT_PLUGIN_INITIALIZE = 3,
  GB_PJRT_EVENT_AWAIT = 8,
  GB_PJRT_CLIENT_CREATE = 10,
  GB_PJRT_CLIENT_DESTROY = 11,
  GB_PJRT_CLIENT_PLATFORM_NAME = 12,
  GB_PJRT_CLIENT_PLATFORM_VERSION = 14,
  GB_PJRT_CLIENT_DEVICES = 15,
  GB_PJRT_CLIENT_ADDRESSABLE_DEVICES = 16,
  GB_PJRT_CLIENT_COMPILE = 20,
  GB_PJRT_DEVICE_DESCRIPTION_ID = 23,
  GB_PJRT_DEVICE_DESCRIPTION_PROCESS_INDEX = 24,
  GB_PJRT_DEVICE_DESCRIPTION_KIND = 26,
  GB_PJRT_DEVICE_GET_DESCRIPTION = 29,
  GB_PJRT_DEVICE_MEMORY_STATS = 34,
  GB_PJRT_EXECUTABLE_DESTROY = 40,
  GB_PJRT_EXECUTABLE_OPTIMIZED = 48,
  GB_PJRT_EXECUTABLE_SERIALIZE = 49,
  GB_PJRT_LOADED_EXECUTABLE_DESTROY = 50,
  GB_PJRT_LOADED_EXECUTABLE_GET_EXECUTABLE = 51,
  GB_PJRT_LOADED_EXECUTABLE_EXECUTE = 55,
  GB_PJRT_EXECUTABLE_DESERIALIZE_AND_LOAD = 56,
  GB_PJRT_TOPOLOGY_CREATE = 82,
  GB_PJRT_TOPOLOGY_DESTROY = 83,
  GB_PJRT_COMPILE = 89,
  GB_PJRT_EXECUTABLE_MEMORY = 96,
};

typedef struct {
  GB_PJRT_HEAD
  gb_pjrt_version version;
  void *function[];
} gb_pjrt_api;

typedef struct {
  GB_PJRT_HEAD
  gb_pjrt_error *error;
} gb_pjrt_error_destroy_args;

typedef struct {
  GB_PJRT_HEAD
  const gb_pjrt_error *error;
  const char *message;
  size_t message_size;
} gb_pjrt_error_message_args;

enum {
  GB_PJRT_CANCELLED = 1,
  GB_PJRT_INVALID_ARGUMENT = 3,
  GB_PJRT_DEADLINE_EXCEEDED = 4,
  GB_PJRT_NOT_FOUND = 5,
  GB_PJRT_ALREADY_EXISTS = 6,
  GB_PJRT_FAILED_PRECONDITION = 9,
  GB_PJRT_UNAVAILABLE = 14,
};

typedef struct {
  GB_PJRT_HEAD
  const gb_pjrt_error *error;
  int code;
} gb_pjrt_error_code_args;

typedef struct {
  GB_PJRT_HEAD
  char *code;
  size_t code_size;
  const char *format;
  size_t format_size;
} gb_pjrt_program;

typedef struct {
  GB_PJRT_HEAD
  void *client;
  const gb_pjrt_program *program;
  const char *compile_options;
  size_t compile_options_size;
  void *executable;
} gb_pjrt_compile_args;

typedef gb_pjrt_error *(*gb_pjrt_compile_function)(gb_pjrt_compile_args *);

// What takes only a client, an executable or the like: Destroy of all of them, and Event_Await.
typedef struct {
  GB_PJRT_HEAD
  void *handle;
} gb_pjrt_handle_args;

// Device_GetDescription and LoadedExecutable_GetExecutable.
typedef struct {
  GB_PJRT_HEAD
  void *of;
  void *part;
} gb_pjrt_part_args;

// A client's PlatformName and PlatformVersion, and a device description's Kind.
typedef struct {
  GB_PJRT_HEAD
  void *of;
  const char *text;
  size_t text_size;
} gb_pjrt_text_args;

typedef struct {
  GB_PJRT_HEAD
  void *client;
  void *const *devices;
  size_t num_devices;
} gb_pjrt_addressable_devices_args;  // Also Devices.

typedef struct {
  int64_t value;
  uint8_t is_set;
} gb_pjrt_statistic;

typedef struct {
  GB_PJRT_HEAD
  void *device;
  int64_t in_use;
  gb_pjrt_statistic peak_in_use, allocations, largest, limit;
  gb_pjrt_statistic reserved, peak_reserved, reservable, largest_free, pool, peak_pool;
} gb_pjrt_memory_stats_args;

typedef struct {
  GB_PJRT_HEAD
  const void *executable;
  const char *bytes;
  size_t bytes_size;
  void *owner;  // The owner of the bytes.
  void (*delete_owner)(void *owner);
} gb_pjrt_serialize_args;

typedef struct {
  GB_PJRT_HEAD
  void *client;
  const char *bytes;
  size_t bytes_size;
  void *loaded_executable;
  const char *compile_options;  // Replace the program's own.
  size_t compile_options_size;
} gb_pjrt_deserialize_args;

typedef struct {
  GB_PJRT_HEAD
  const char *name;
  size_t name_size;
  int type;
  union {
    const char *string_value;
    int64_t int64_value;
    const int64_t *int64_array_value;
  };
  size_t value_size;
} gb_pjrt_named_value;

enum { GB_PJRT_STRING = 0 };  // The type of a named value.

// gb_pjrt_callback_error makes an error of the plugin.
typedef gb_pjrt_error *(*gb_pjrt_callback_error)(int code, const char *message, size_t message_size);

// What XLA passes to the callbacks of a key-value store. It leaves struct_size unset, and always
// calls the deleter.
typedef struct {
  GB_PJRT_HEAD
  const char *key;
  size_t key_size;
  int timeout_in_ms;
  gb_pjrt_callback_error *callback_error;
  void *user_arg;
  char *value;
  size_t value_size;
  void (*delete_value)(char *value);
} gb_pjrt_key_value_get_args;

typedef struct {
  GB_PJRT_HEAD
  const char *key;
  size_t key_size;
  gb_pjrt_callback_error *callback_error;
  void *user_arg;
  char *value;
  size_t value_size;
  void (*delete_value)(char *value);
} gb_pjrt_key_value_try_get_args;

typedef struct {
  GB_PJRT_HEAD
  const char *key;
  size_t key_size;
  const char *value;
  size_t value_size;
  gb_pjrt_callback_error *callback_error;
  void *user_arg;
} gb_pjrt_key_value_put_args;

typedef struct {
  GB_PJRT_HEAD
  const gb_pjrt_named_value *options;
  size_t num_options;
  gb_pjrt_error *(*get)(gb_pjrt_key_value_get_args *);
  void *get_user_arg;
  gb_pjrt_error *(*put)(gb_pjrt_key_value_put_args *);
  void *put_user_arg;
  void *client;
  gb_pjrt_error *(*try_get)(gb_pjrt_key_value_try_get_args *);
  void *try_get_user_arg;
} gb_pjrt_client_create_args;

typedef struct {
  GB_PJRT_HEAD
  void *description;
  int number;
} gb_pjrt_description_number_args;  // Id and ProcessIndex.

typedef struct {
  GB_PJRT_HEAD
  void *executable;
  void *options;
  void *const *const *arguments;
  size_t num_devices;
  size_t num_arguments;
  void **const *outputs;
  void **complete_events;  // NULL, or one for each device.
  void *execute_device;
} gb_pjrt_execute_args;

// What compiles without a client.
typedef struct {
  GB_PJRT_HEAD
} gb_pjrt_initialize_args;

typedef struct {
  GB_PJRT_HEAD
  const char *name;
  size_t name_size;
  const gb_pjrt_named_value *options;
  size_t num_options;
  void *topology;
} gb_pjrt_topology_args;

typedef struct {
  GB_PJRT_HEAD
  const void *topology;
  const gb_pjrt_program *program;
  const char *options;
  size_t options_size;
  void *client;
  void *executable;
} gb_pjrt_topology_compile_args;

typedef struct {
  GB_PJRT_HEAD
  void *executable;
  int64_t code, arguments, outputs, aliased, temporary;
  int64_t host[5];  // The same of the host.
  int64_t peak, total, allocated, indefinite, peak_unpadded;
} gb_pjrt_memory_args;

typedef struct {
  GB_PJRT_HEAD
  void *executable;
  gb_pjrt_program *program;
} gb_pjrt_optimized_args;

// The FFI extension. Its register call has, unlike all others, no extension_start.
typedef struct {
  size_t struct_size;
  const char *target_name;
  size_t target_name_size;
  void *handler;
  const char *platform_name;
  size_t platform_name_size;
  int traits;
} gb_pjrt_register_handler_args;

typedef struct {
  gb_pjrt_extension base;
  void *type_register;
  void *user_data_add;
  gb_pjrt_error *(*register_handler)(gb_pjrt_register_handler_args *);
} gb_pjrt_ffi_extension;

// ---- XLA FFI ----

enum { GB_FFI_EXTENSION_METADATA = 1 };
enum { GB_FFI_STAGE_EXECUTE = 3 };
enum { GB_FFI_INVALID_ARGUMENT = 3, GB_FFI_INTERNAL = 13 };

// xla::PrimitiveType
enum { GB_FFI_S32 = 4, GB_FFI_S64 = 5, GB_FFI_U8 = 6, GB_FFI_U32 = 8, GB_FFI_U64 = 9, GB_FFI_F16 = 10, GB_FFI_F32 = 11, GB_FFI_F64 = 12, GB_FFI_BF16 = 16 };

typedef struct gb_ffi_extension {
  size_t struct_size;
  int type;
  struct gb_ffi_extension *next;
} gb_ffi_extension;

#define GB_FFI_HEAD    \
  size_t struct_size; \
  gb_ffi_extension *extension_start;

typedef struct {
  GB_FFI_HEAD
  int major_version;
  int minor_version;
} gb_ffi_version;

typedef struct gb_ffi_error gb_ffi_error;

typedef struct {
  GB_FFI_HEAD
  const char *message;
  int code;
} gb_ffi_error_create_args;

typedef struct {
  GB_FFI_HEAD
  gb_ffi_version version;
  const void *internal_api;
  gb_ffi_error *(*error_create)(gb_ffi_error_create_args *);
} gb_ffi_api;

typedef struct {
  GB_FFI_HEAD
  int dtype;
  void *data;
  int64_t rank;
  int64_t *dims;
} gb_ffi_buffer;

typedef struct {
  GB_FFI_HEAD
  int64_t size;
  int *types;
  void **values;
} gb_ffi_values;

typedef struct {
  GB_FFI_HEAD
  const gb_ffi_api *api;
  void *context;
  int stage;
  gb_ffi_values args;
  gb_ffi_values rets;
} gb_ffi_call_frame;

typedef struct {
  size_t struct_size;
  gb_ffi_version version;
  uint32_t traits;
} gb_ffi_metadata;

typedef struct {
  gb_ffi_extension base;
  gb_ffi_metadata *metadata;
} gb_ffi_metadata_extension;

#endif
