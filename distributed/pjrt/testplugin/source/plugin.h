// The parts of the test plugin.
#ifndef TESTPLUGIN_H
#define TESTPLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pjrt_c_api.h"

// cpu is the function table of the plugin that computes.
extern const PJRT_Api *cpu;

// process is this process's place in its job.
typedef struct {
  int rank, size;
  bool mocks;  // The other processes don't exist, and collectives do nothing.
  PJRT_Client_Create_Args callbacks;  // The arguments with which the client was created.
} process;

extern process me;

// failed creates an error, with printf's arguments. PJRT_Error_Destroy frees it.
PJRT_Error *failed(PJRT_Error_Code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
PJRT_Error_Code code_of(PJRT_Error *error);
void drop(PJRT_Error *error);
PJRT_Error *callback_error(PJRT_Error_Code code, const char *message, size_t size);
void wrap_errors(PJRT_Api *api);

// The key-value store of the job. *value is from malloc and ends with a zero.
PJRT_Error *kv_put(const char *key, const void *value, size_t size);
PJRT_Error *kv_get(const char *key, int milliseconds, char **value, size_t *size);
PJRT_Error *kv_try_get(const char *key);  // It drops the value.

// find_others publishes this process's topology, and waits for those of the others.
PJRT_Error *find_others(const char *gpu);

void wrap_clients(PJRT_Api *api);
void wrap_devices(PJRT_Api *api);
void wrap_programs(PJRT_Api *api);

// device_id returns the number of a rank's device, which follows the network, not the rank.
int device_id(int rank);

// make_devices creates the devices of all processes. Those of this process are the CPU plugin's.
void make_devices(PJRT_Device *const *mine, int count, const char *gpu);

// The kinds of collectives, and how some combine values. A broadcast begins at the first member of
// a group.
enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST };
enum { SUM, MIN, MAX };

// lower_program turns a program for all devices into one for a single device, in memory from
// malloc. It returns NULL if the program has no collective. *count is the number of collectives.
char *lower_program(const char *code, size_t size, int *count);
PJRT_Error *check_groups(const char *code, size_t size);

// register_collectives registers the collectives with the CPU plugin.
PJRT_Error *register_collectives(void);

#endif
