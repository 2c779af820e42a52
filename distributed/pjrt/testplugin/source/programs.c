// Compiles this process's part of a program for the devices of all processes: a program for one
// device, with each collective as a custom call.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "plugin.h"

// ops are the collectives, by their kinds.
static const char *const ops[] = {"\"stablehlo.all_reduce\"(", "\"stablehlo.all_gather\"(", "\"stablehlo.reduce_scatter\"(", "\"stablehlo.all_to_all\"(",
                                  "\"stablehlo.collective_broadcast\"("};

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

// division is the groups of a collective, one after the other.
typedef struct {
  int ranks[MAX_REPLICAS];
  int count, groups;
} division;

// read_groups reads replica_groups = dense<[[0, 1], [2, 3]]>.
static division read_groups(const char *code) {
  division d = {0};
  const char *at = strstr(code, "replica_groups = dense<[[");
  for (at = at == NULL ? "" : strchr(at, '['); *at != 0 && *at != '>'; at++) {
    d.groups += *at == ']';
    if (*at < '0' || *at > '9' || d.count == MAX_REPLICAS) continue;
    char *end;
    d.ranks[d.count++] = (int)strtol(at, &end, 10);
    at = end - 1;
  }
  d.groups--;  // The list of groups ends like a group.
  return d;
}

// check_groups refuses groups that don't have each process once.
PJRT_Error *check_groups(const char *code, size_t size) {
  char *whole = strndup(code, size);
  PJRT_Error *error = NULL;
  int kind;
  for (const char *at = whole; error == NULL && (at = next_op(at, whole + size, &kind)) != NULL; at++) {
    division d = read_groups(at);
    int seen[MAX_REPLICAS] = {0}, wrong = d.count != me.size || d.groups < 1 || d.count % d.groups != 0;
    for (int i = 0; i < d.count && !wrong; i++) wrong = d.ranks[i] >= me.size || seen[d.ranks[i]]++;
    if (wrong) error = failed(PJRT_Error_Code_INVALID_ARGUMENT, "the groups of a collective don't have each of %d processes once", me.size);
  }
  free(whole);
  return error;
}

typedef struct {
  char *text;
  size_t size;
  FILE *stream;
} output;

// reduction finds how a collective combines values.
static int reduction(const char *at, const char *end) {
  const char *min = memmem(at, end - at, "stablehlo.minimum", strlen("stablehlo.minimum")), *max = memmem(at, end - at, "stablehlo.maximum", strlen("stablehlo.maximum"));
  return min != NULL ? MIN : max != NULL ? MAX : SUM;
}

// write_form writes a constant with what collective.c reads.
static void write_form(FILE *out, const char *at, int kind, int number) {
  division d = read_groups(at);
  fprintf(out, "    %%testplugin_form = stablehlo.constant dense<[%d, %d, %d, %d", number, kind, reduction(at, strstr(at, "replica_groups")), d.count / (d.groups > 0 ? d.groups : 1));
  for (int i = 0; i < d.count; i++) fprintf(out, ", %d", d.ranks[i]);
  fprintf(out, "]> : tensor<%dxi64>\n", 4 + d.count);
}

// lower_one replaces the collective at `at` by the custom call, and returns its end.
static const char *lower_one(FILE *out, const char *at, int kind) {
  const char *x = at + strlen(ops[kind]);
  int x_size = (int)strcspn(x, ")");
  const char *groups = strstr(at, "replica_groups"), *type = strstr(groups, "} : (") + strlen("} : (");
  int type_size = (int)strcspn(type, ")");
  const char *result = strstr(type, ") -> ") + strlen(") -> ");
  int result_size = (int)strcspn(result, "\n");
  fprintf(out, "stablehlo.custom_call @testplugin_collective(%.*s, %%testplugin_form) {api_version = 4 : i32, has_side_effect = true, backend_config = {}} : (%.*s, tensor<%dxi64>) -> %.*s",
          x_size, x, type_size, type, 4 + read_groups(at).count, result_size, result);
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
    fprintf(o.stream, "%.*s", (int)(line - at), at);
    write_form(o.stream, found, kind, *count);
    fprintf(o.stream, "%.*s", (int)(found - line), line);
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
