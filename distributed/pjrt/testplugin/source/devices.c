// The devices of all processes. Those of other processes can only be described.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef struct {
  int id, process;
  char text[256];
} description;

typedef struct {
  PJRT_Device *real;  // NULL if it belongs to another process.
  description what;
} device;

static device *devices;
static PJRT_Device **handles;
static int total, own;

// device_id reverses the ranks, because the network's order differs from theirs.
int device_id(int rank) { return me.size - 1 - rank; }

static void add(int id, int process, PJRT_Device *real, const char *gpu) {
  device *d = &devices[total];
  *d = (device){.real = real, .what = {.id = id, .process = process}};
  snprintf(d->what.text, sizeof d->what.text, "TestGPU(id=%d, process=%d, gpu=%s)", id, process, gpu);
  handles[total] = real != NULL ? real : (PJRT_Device *)d;
  total++;
}

void make_devices(PJRT_Device *const *mine, int count, const char *gpu) {
  devices = calloc(count + me.size, sizeof *devices);
  handles = calloc(count + me.size, sizeof *handles);
  own = count;
  for (int i = 0; i < count; i++) add(me.size == 1 ? i : device_id(me.rank), me.rank, mine[i], gpu);
  for (int rank = 0; rank < me.size; rank++)
    if (rank != me.rank) add(device_id(rank), rank, NULL, "of another process");
}

static device *find(const PJRT_Device *handle) {
  for (int i = 0; i < total; i++)
    if (handles[i] == handle) return &devices[i];
  return NULL;
}

static PJRT_Error *all_devices(PJRT_Client_Devices_Args *args) {
  args->devices = handles;
  args->num_devices = total;
  return NULL;
}

static PJRT_Error *get_description(PJRT_Device_GetDescription_Args *args) {
  args->device_description = (PJRT_DeviceDescription *)&find(args->device)->what;
  return NULL;
}

static PJRT_Error *is_addressable(PJRT_Device_IsAddressable_Args *args) {
  args->is_addressable = find(args->device)->real != NULL;
  return NULL;
}

static PJRT_Error *local_hardware_id(PJRT_Device_LocalHardwareId_Args *args) {
  device *d = find(args->device);
  args->local_hardware_id = d->real == NULL ? -1 : (int)(d - devices);
  return NULL;
}

static PJRT_Error *id(PJRT_DeviceDescription_Id_Args *args) {
  args->id = ((description *)args->device_description)->id;
  return NULL;
}

static PJRT_Error *process_of(PJRT_DeviceDescription_ProcessIndex_Args *args) {
  args->process_index = ((description *)args->device_description)->process;
  return NULL;
}

static PJRT_Error *kind(PJRT_DeviceDescription_Kind_Args *args) {
  args->device_kind = "Test GPU";
  args->device_kind_size = strlen(args->device_kind);
  return NULL;
}

static PJRT_Error *debug_string(PJRT_DeviceDescription_DebugString_Args *args) {
  args->debug_string = ((description *)args->device_description)->text;
  args->debug_string_size = strlen(args->debug_string);
  return NULL;
}

static PJRT_Error *to_string(PJRT_DeviceDescription_ToString_Args *args) {
  args->to_string = ((description *)args->device_description)->text;
  args->to_string_size = strlen(args->to_string);
  return NULL;
}

void wrap_devices(PJRT_Api *api) {
  api->PJRT_Client_Devices = all_devices;
  api->PJRT_Device_GetDescription = get_description;
  api->PJRT_Device_IsAddressable = is_addressable;
  api->PJRT_Device_LocalHardwareId = local_hardware_id;
  api->PJRT_DeviceDescription_Id = id;
  api->PJRT_DeviceDescription_ProcessIndex = process_of;
  api->PJRT_DeviceDescription_Kind = kind;
  api->PJRT_DeviceDescription_DebugString = debug_string;
  api->PJRT_DeviceDescription_ToString = to_string;
}
