// Compiles this process's part of a program for the devices of all processes: a program for one
// device, with each collective as a custom call.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "plugin.h"

// ops are the collectives, by their kinds.
static const char *const ops[] = {"\"stablehlo.all_reduce\"(", "\"stablehlo.all_gather\"(", "\"stablehlo.reduce_scatter\"("};

// next_op finds the next collective of a program, and its kind.
static const char *next_op(const char *at, const char *end, int *kind) {
  const char *first = NULL;
  for (int i = 0; i < (int)(sizeof ops / sizeof *ops); i++) {
    const char *found = memmem(at, end - at, ops[i], strlen(ops[i]));
    if (found == NULL || (first != NULL && found > first)) continue;
    first = found;
    *kind = i;
  }
  return first;
}

// check_assignment refuses any assignment but one replica on the device of each process.
static PJRT_Error *check_assignment(const options *o) {
  if (o->replicas != me.size)
    return failed(PJRT_Error_Code_INVALID_ARGUMENT, "a collective over %d devices, and num_replicas is %d", me.size, (int)o->replicas);
  if (o->portable) return failed(PJRT_Error_Code_INVALID_ARGUMENT, "a portable program has %d replicas", me.size);
  if (o->assigned_replicas != me.size || o->assigned_computations != 1 || o->num_ids != me.size)
    return failed(PJRT_Error_Code_INVALID_ARGUMENT, "a device assignment of %d x %d with %d devices, want %d", (int)o->assigned_replicas, (int)o->assigned_computations, o->num_ids, me.size);
  for (int rank = 0; rank < me.size; rank++)
    if (o->ids[rank] != device_id(rank))
      return failed(PJRT_Error_Code_INVALID_ARGUMENT, "replica %d is on device %d, want process %d's device %d", rank, (int)o->ids[rank], rank, device_id(rank));
  return NULL;
}

static PJRT_Error *check(const PJRT_Client_Compile_Args *args, int collectives) {
  options o = read_options(args->compile_options, args->compile_options_size);
  if (o.malformed) return failed(PJRT_Error_Code_INVALID_ARGUMENT, "malformed compile options");
  if (me.size > 1 && o.sharded_autotuning)
    return failed(PJRT_Error_Code_DEADLINE_EXCEEDED, "xla_gpu_shard_autotuning is on: this process would wait for those that do not compile this program");
  if (collectives == 0) return o.replicas > 1 && me.size > 1 ? failed(PJRT_Error_Code_INVALID_ARGUMENT, "%d replicas of a program without collectives", (int)o.replicas) : NULL;
  PJRT_Error *error = check_assignment(&o);
  return error != NULL ? error : check_groups(args->program->code, args->program->code_size);
}

PJRT_Error *check_groups(const char *code, size_t size) {
  char want[1024] = "replica_groups = dense<[[", number[32];
  for (int rank = 0; rank < me.size; rank++) {
    snprintf(number, sizeof number, rank == 0 ? "%d" : ", %d", rank);
    strcat(want, number);
  }
  strcat(want, "]]>");
  int kind;
  for (const char *at = code; (at = next_op(at, code + size, &kind)) != NULL; at++) {
    const char *groups = memmem(at, code + size - at, "replica_groups", strlen("replica_groups"));
    if (groups == NULL || strncmp(groups, want, strlen(want)) != 0) return failed(PJRT_Error_Code_INVALID_ARGUMENT, "a collective lacks %s", want);
  }
  return NULL;
}

typedef struct {
  char *text;
  size_t size;
  FILE *stream;
} output;

// lower_one replaces the collective at `at` by the custom call, and returns its end.
static const char *lower_one(FILE *out, const char *at, int kind) {
  static const char *const targets[] = {"all_reduce", "all_gather", "reduce_scatter"};
  const char *x = at + strlen(ops[kind]);
  int x_size = (int)strcspn(x, ")");
  const char *groups = strstr(at, "replica_groups"), *type = strstr(groups, "} : (") + strlen("} : (");
  int type_size = (int)strcspn(type, ")");
  const char *result = strstr(type, ") -> ") + strlen(") -> ");
  int result_size = (int)strcspn(result, "\n");
  fprintf(out, "stablehlo.custom_call @testplugin_%s(%.*s, %%testplugin_number) {api_version = 4 : i32, has_side_effect = true, backend_config = {}} : (%.*s, tensor<i64>) -> %.*s",
          targets[kind], x_size, x, type_size, type, result_size, result);
  return result + result_size;
}

char *lower_program(const char *code, size_t size, int *count) {
  *count = 0;
  char *whole = strndup(code, size);
  output o = {0};
  o.stream = open_memstream(&o.text, &o.size);
  const char *at = whole, *found, *end = whole + strlen(whole);
  int kind;
  while ((found = next_op(at, end, &kind)) != NULL) {
    const char *line = found;  // The constant goes on a line before this one.
    while (line > at && line[-1] != '\n') line--;
    fprintf(o.stream, "%.*s    %%testplugin_number = stablehlo.constant dense<%d> : tensor<i64>\n%.*s", (int)(line - at), at, *count, (int)(found - line), line);
    at = lower_one(o.stream, found, kind);
    ++*count;
  }
  fputs(at, o.stream);
  fclose(o.stream);
  free(whole);
  if (*count > 0) return o.text;
  free(o.text);
  return NULL;
}

// The options for one device, portable: {3: {1: -1, 4: 1, 5: 1}, 4: 1}.
static const char one_device[] = "\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01\x20\x01";

static PJRT_Error *compile(PJRT_Client_Compile_Args *args) {
  int count = 0;
  char *code = lower_program(args->program->code, args->program->code_size, &count);
  PJRT_Error *error = check(args, count);
  if (error != NULL || (count == 0 && me.size == 1)) {
    free(code);
    return error != NULL ? error : cpu->PJRT_Client_Compile(args);
  }
  PJRT_Program program = *args->program;
  if (code != NULL) {
    program.code = code;
    program.code_size = strlen(code);
  }
  PJRT_Client_Compile_Args changed = *args;
  changed.program = &program;
  changed.compile_options = one_device;
  changed.compile_options_size = sizeof one_device - 1;
  error = cpu->PJRT_Client_Compile(&changed);
  args->executable = changed.executable;
  free(code);
  return error;
}

void wrap_programs(PJRT_Api *api) { api->PJRT_Client_Compile = compile; }
