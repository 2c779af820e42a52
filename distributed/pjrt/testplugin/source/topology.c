// The processes exchange their devices in the order, and with the keys and time limits, of XLA's
// GPU client: each puts its own; process 0 gets all of them at once, from several threads, and puts
// the whole.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

enum { LOCAL_LIMIT = 2 * 60 * 1000, GLOBAL_LIMIT = 5 * 60 * 1000 };

typedef struct {
  int32_t zero;  // The value is binary.
  int32_t rank;
  char host[64], gpu[128];
} local;

static void local_key(char *key, size_t size, int rank) { snprintf(key, size, "local_topology/cuda/%d", rank); }

static const char global_key[] = "global_topology/cuda";

static PJRT_Error *put_local(const char *gpu) {
  local l = {.rank = me.rank};
  gethostname(l.host, sizeof l.host - 1);
  snprintf(l.gpu, sizeof l.gpu, "%s", gpu);
  char key[64];
  local_key(key, sizeof key, me.rank);
  PJRT_Error *error = kv_put(key, &l, sizeof l);
  if (error != NULL) return error;
  PJRT_Error *again = kv_put(key, &l, sizeof l);
  if (again == NULL) return failed(PJRT_Error_Code_INTERNAL, "a repeated put of %s succeeds, want ALREADY_EXISTS", key);
  if (code_of(again) != PJRT_Error_Code_ALREADY_EXISTS) return again;
  drop(again);
  return NULL;
}

typedef struct {
  int rank;
  local *found;
  PJRT_Error *error;
  pthread_t thread;
} getter;

static void *get_local(void *argument) {
  getter *g = argument;
  char key[64], *value = NULL;
  size_t size = 0;
  local_key(key, sizeof key, g->rank);
  g->error = kv_get(key, LOCAL_LIMIT, &value, &size);
  if (g->error == NULL && size != sizeof *g->found)
    g->error = failed(PJRT_Error_Code_INTERNAL, "%s has %zu bytes, want %zu", key, size, sizeof *g->found);
  if (g->error == NULL) memcpy(g->found, value, size);
  if (g->error == NULL && (g->found->rank != g->rank || g->found->zero != 0))
    g->error = failed(PJRT_Error_Code_INTERNAL, "%s is not from process %d", key, g->rank);
  free(value);
  return NULL;
}

static PJRT_Error *put_global(void) {
  local *all = calloc(me.size, sizeof *all);
  getter *getters = calloc(me.size, sizeof *getters);
  for (int i = 0; i < me.size; i++) {
    getters[i] = (getter){.rank = i, .found = &all[i]};
    pthread_create(&getters[i].thread, NULL, get_local, &getters[i]);
  }
  PJRT_Error *error = NULL;
  for (int i = 0; i < me.size; i++) {
    pthread_join(getters[i].thread, NULL);
    if (error == NULL) error = getters[i].error;
  }
  if (error == NULL) error = kv_put(global_key, all, me.size * sizeof *all);
  free(all);
  free(getters);
  return error;
}

// check_global refuses what NCCL refuses: two processes on one GPU.
static PJRT_Error *check_global(void) {
  local *all = NULL;
  size_t size = 0;
  PJRT_Error *error = kv_get(global_key, GLOBAL_LIMIT, (char **)&all, &size);
  if (error == NULL && size != me.size * sizeof *all)
    error = failed(PJRT_Error_Code_INTERNAL, "%s has %zu bytes, want %zu", global_key, size, me.size * sizeof *all);
  for (int i = 0; error == NULL && i < me.size; i++)
    for (int k = 0; k < i; k++)
      if (strcmp(all[i].host, all[k].host) == 0 && strcmp(all[i].gpu, all[k].gpu) == 0 && error == NULL)
        error = failed(PJRT_Error_Code_INTERNAL, "Duplicate GPU detected: rank %d and rank %d both on %s %s", i, k, all[i].host, all[i].gpu);
  free(all);
  return error;
}

PJRT_Error *find_others(const char *gpu) {
  char key[64];
  snprintf(key, sizeof key, "nobody/%d", me.rank);
  PJRT_Error *nobody = kv_try_get(key);
  if (nobody == NULL) return failed(PJRT_Error_Code_INTERNAL, "a try_get of %s succeeds, want NOT_FOUND", key);
  if (code_of(nobody) != PJRT_Error_Code_NOT_FOUND) return nobody;
  drop(nobody);
  PJRT_Error *error = put_local(gpu);
  if (error == NULL && me.rank == 0) error = put_global();
  return error != NULL ? error : check_global();
}
