#ifndef GONBATCH_PJRT_PLUGIN_H
#define GONBATCH_PJRT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

// The kinds of collectives, with the numbers that all packages have for them.
enum { GB_ALL_REDUCE = 1, GB_BROADCAST = 2, GB_ALL_GATHER = 3, GB_REDUCE_SCATTER = 5, GB_ALL_TO_ALL = 6 };

// gb_transport runs a collective, with elements of `dtype` (an xla::PrimitiveType): see Transport
// in plugin.go. It returns 0, or non-zero and a zero-terminated text of at most error_size bytes in
// `error`.
typedef int (*gb_transport)(int kind, const void *in, void *out, int64_t count, int dtype, const int64_t *form,
                            char *error, size_t error_size);

// gb_plugin_load opens the PJRT plugin at path. It returns the API table for go-xla, whose compile
// call rewrites programs first, or NULL and a text in `error`.
const gb_pjrt_api *gb_plugin_load(const char *path, char *error, size_t error_size);

// gb_set_transport sets what all collectives use, and the number of ranks.
void gb_set_transport(gb_transport transport, int ranks);

// gb_plugin_register registers the handler of a custom call with the loaded plugin under the name
// `target`, which must stay valid.
int gb_plugin_register(const char *target, void *handler, char *error, size_t error_size);

// gb_plugin_function returns a function of the loaded plugin, by its index in the table (abi.h).
// GB_CALL calls one that takes a struct and returns an error.
void *gb_plugin_function(int index);
#define GB_CALL(index, args) (((gb_pjrt_error * (*)(void *)) gb_plugin_function(index))(args))

// gb_plugin_replace makes go-xla call that function instead of the plugin's.
void gb_plugin_replace(int index, void *function);

// gb_error creates an error. It takes ownership of the text, which must be from malloc.
gb_pjrt_error *gb_error(char *text);

// gb_error_read copies an error's text, as far as it fits. gb_error_take also destroys the error.
void gb_error_read(gb_pjrt_error *err, char *text, size_t size);
void gb_error_take(gb_pjrt_error *err, char *text, size_t size);

// gb_refused reports whether a call has failed, for whatever reason.
int gb_refused(gb_pjrt_error *err);

#endif
