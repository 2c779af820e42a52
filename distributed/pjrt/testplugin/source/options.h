// The part of XLA's CompileOptionsProto that the test plugin checks.
#ifndef TESTPLUGIN_OPTIONS_H
#define TESTPLUGIN_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { MAX_REPLICAS = 64 };

typedef struct {
  int64_t replicas, portable;
  int64_t assigned_replicas, assigned_computations;
  int64_t ids[MAX_REPLICAS];
  int num_ids;
  int sharded_autotuning;  // 1 unless it is turned off.
  int malformed;
} options;

options read_options(const char *data, size_t size);

#endif
