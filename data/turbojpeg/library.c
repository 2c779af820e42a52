// Opens libjpeg-turbo's library TurboJPEG at run time, without its headers. The functions are those
// of its version 2, which version 3 still exports under the same soname:
// https://libjpeg-turbo.org/Documentation/Documentation
#include "library.h"

#include <dlfcn.h>
#include <stdio.h>

// Constants of turbojpeg.h.
enum {
  TJPF_RGBA = 7,
  TJFLAG_FASTUPSAMPLE = 256,
  TJFLAG_STOPONWARNING = 8192,
};

static void *symbol(void *handle, const char *name, char *error, size_t error_size) {
  void *p = dlsym(handle, name);
  if (p == NULL) snprintf(error, error_size, "this is not TurboJPEG 2.0 or newer: no symbol %s", name);
  return p;
}

int gb_turbojpeg_open(struct gb_turbojpeg *library, const char *name, char *error, size_t error_size) {
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    snprintf(error, error_size, "%s", dlerror());
    return 1;
  }
#define FIND(field, name) \
  if ((*(void **)&library->field = symbol(handle, name, error, error_size)) == NULL) return 1
  FIND(init_decompress, "tjInitDecompress");
  FIND(destroy, "tjDestroy");
  FIND(header, "tjDecompressHeader3");
  FIND(decompress, "tjDecompress2");
  FIND(error, "tjGetErrorStr2");
#undef FIND
  return 0;
}

// The colors of a block of pixels are repeated, as in Go's package image, not interpolated.
int gb_turbojpeg_decode(const struct gb_turbojpeg *library, void *decoder, const void *jpeg, size_t size, void *pixels,
                        int width, int height) {
  return library->decompress(decoder, jpeg, size, pixels, width, 0, height, TJPF_RGBA,
                             TJFLAG_FASTUPSAMPLE | TJFLAG_STOPONWARNING);
}
