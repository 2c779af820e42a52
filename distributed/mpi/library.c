// Opens an MPI library at run time, without its headers. Two binary interfaces are in use:
//
//   Open MPI: handles are addresses of exported objects (ompi_mpi_comm_world, ...).
//   MPICH, and all MPIs of the MPICH ABI initiative (Intel MPI, Cray MPICH, MVAPICH): handles are
//   32-bit constants.
//
// A handle is passed as a machine word. On the 64-bit platforms of Go and XLA, an int argument is
// read from the same register, or from the same place on the stack.
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct gb_library gb_mpi;

static void *symbol(const char *name, char *error, size_t error_size) {
  void *p = dlsym(gb_mpi.handle, name);
  if (p == NULL) snprintf(error, error_size, "this is not an MPI library: no symbol %s", name);
  return p;
}

// handles are those of both binary interfaces. The constants are those of the MPICH ABI:
// https://www.mpich.org/abi/
static const struct {
  gb_handle *to;
  const char *open_mpi;
  gb_handle mpich;
} handles[] = {
    {&gb_mpi.world, "ompi_mpi_comm_world", 0x44000000},
    {&gb_mpi.byte, "ompi_mpi_byte", 0x4c00010d},
    {&gb_mpi.uint8, "ompi_mpi_unsigned_char", 0x4c000102},
    {&gb_mpi.int32, "ompi_mpi_int", 0x4c000405},
    {&gb_mpi.int64, "ompi_mpi_long", 0x4c000807},
    {&gb_mpi.float32, "ompi_mpi_float", 0x4c00040a},
    {&gb_mpi.float64, "ompi_mpi_double", 0x4c00080b},
    {&gb_mpi.sum, "ompi_mpi_op_sum", 0x58000003},
    {&gb_mpi.min, "ompi_mpi_op_min", 0x58000002},
    {&gb_mpi.max, "ompi_mpi_op_max", 0x58000001},
    {&gb_mpi.errors_return, "ompi_mpi_errors_return", 0x54000001},
};

static void find_handles(void) {
  int is_open_mpi = dlsym(gb_mpi.handle, "ompi_mpi_comm_world") != NULL;
  for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
    *handles[i].to = is_open_mpi ? (gb_handle)dlsym(gb_mpi.handle, handles[i].open_mpi) : handles[i].mpich;
  gb_mpi.in_place = is_open_mpi ? (void *)1 : (void *)-1;
  gb_mpi.no_status = is_open_mpi ? NULL : (void *)1;
}

int gb_mpi_open(const char *library, char *error, size_t error_size) {
  // RTLD_GLOBAL, because Open MPI's own plugins look up its symbols there.
  gb_signals_save();
  gb_mpi.handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  gb_signals_restore();
  if (gb_mpi.handle == NULL) {
    snprintf(error, error_size, "%s", dlerror());
    return 1;
  }
#define FIND(field, name, parameters) \
  if ((*(void **)&gb_mpi.field = symbol(#name, error, error_size)) == NULL) return 1;
  GB_MPI_FUNCTIONS(FIND)
#undef FIND
  find_handles();
  return 0;
}
