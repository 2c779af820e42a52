// For caching compiled programs: converts them to bytes and back.
#ifndef GONBATCH_PJRT_KEEP_H
#define GONBATCH_PJRT_KEEP_H

#include "abi.h"

// gb_compile is the plugin's own function.
gb_pjrt_error *gb_compile(gb_pjrt_compile_args *args);

// gb_compile_for is gb_compile on a machine that XLA takes for one with that many CPUs; 0 is as
// many as there are.
gb_pjrt_error *gb_compile_for(gb_pjrt_compile_args *args, int cpus);

// gb_can_count reports whether XLA can be made to find another number of CPUs: not if Go's own
// linker has linked the program.
int gb_can_count(void);

// gb_serialize converts a compiled program to bytes, which `args` holds until gb_serialize_done. It
// returns 0 if the plugin can't do that.
int gb_serialize(void *loaded_executable, gb_pjrt_serialize_args *args);
void gb_serialize_done(gb_pjrt_serialize_args *args);

// gb_load loads a compiled program from bytes. It returns NULL if the plugin refuses them.
void *gb_load(void *client, const void *bytes, size_t size);

// gb_describe returns the client's platform, its version, and the kinds of its devices, in memory
// from malloc, or NULL if the plugin does not report them.
char *gb_describe(void *client);

#endif
