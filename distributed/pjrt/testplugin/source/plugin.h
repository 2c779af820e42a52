// The parts of the test plugin.
#ifndef TESTPLUGIN_H
#define TESTPLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pjrt_c_api.h"

// cpu is the table of the plugin that computes.
extern const PJRT_Api *cpu;

// process is what this process is in its job.
typedef struct {
  int rank, size;
  PJRT_Client_Create_Args callbacks;  // Those that the client was created with.
} process;

extern process me;

// failed makes an error, printf-like. It is freed by PJRT_Error_Destroy.
PJRT_Error *failed(PJRT_Error_Code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
PJRT_Error_Code code_of(PJRT_Error *error);
void drop(PJRT_Error *error);
PJRT_Error *callback_error(PJRT_Error_Code code, const char *message, size_t size);
void wrap_errors(PJRT_Api *api);

// The key-value store of the job. *value is malloc's, with a zero behind it.
PJRT_Error *kv_put(const char *key, const void *value, size_t size);
PJRT_Error *kv_get(const char *key, int milliseconds, char **value, size_t *size);
PJRT_Error *kv_try_get(const char *key, char **value, size_t *size);

// find_others has this process' topology known to the others, and waits for theirs.
PJRT_Error *find_others(const char *gpu);

void wrap_clients(PJRT_Api *api);
void wrap_devices(PJRT_Api *api);
void wrap_programs(PJRT_Api *api);

// device_id is the number of a rank's device: it follows the network, not the rank.
int device_id(int rank);

// make_devices makes the devices of all processes. The first of this process is the CPU plugin's.
void make_devices(PJRT_Device *const *mine, int count, const char *gpu);

// lower_program makes a program for one device of one for all, in malloc's memory: NULL if it has no all-reduce. The
// number of those is in *count.
char *lower_program(const char *code, size_t size, int *count);
PJRT_Error *check_groups(const char *code, size_t size);

// register_all_reduce makes the all-reduce known to the CPU plugin.
PJRT_Error *register_all_reduce(void);

#endif
