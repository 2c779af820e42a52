// For XLA's own clients of several processes: a key-value store, and a list of their devices.
#ifndef GONBATCH_PJRT_CLIENTS_H
#define GONBATCH_PJRT_CLIENTS_H

#include "abi.h"

// gb_clients_join makes clients that are created with the option num_nodes find those of the other
// processes.
void gb_clients_join(void);

// gb_clients_pretend has programs counted that run.
void gb_clients_pretend(void);

// gb_client_devices writes the id and the process of each of the client's devices, those of other
// processes too. It returns how many there are, of which at most `max` were written, or -1 if the
// plugin does not say.
int gb_client_devices(void *client, int64_t *ids, int *processes, int max);

// gb_client_memory asks how much of its memory the client's first device has had in use at most,
// and how much it may have. It returns 0 if the plugin does not say.
int gb_client_memory(void *client, int64_t *peak, int64_t *limit);

// gb_callback_failed creates the error of a callback, with XLA's own function.
gb_pjrt_error *gb_callback_failed(gb_pjrt_callback_error *make, int code, const char *text, size_t size);

// gb_free_value frees a value that a callback returned to XLA.
void gb_free_value(char *value);

// gb_execute runs a program with the plugin's own function, and waits for its end. It writes the
// error to `failure`, or "" if there is none.
gb_pjrt_error *gb_execute(gb_pjrt_execute_args *args, char *failure, size_t failure_size);

#endif
