#ifndef GONBATCH_TURBOJPEG_LIBRARY_H
#define GONBATCH_TURBOJPEG_LIBRARY_H

#include <stddef.h>

// gb_turbojpeg is an open library: its functions.
struct gb_turbojpeg {
  void *(*init_decompress)(void);
  int (*destroy)(void *);
  int (*header)(void *, const unsigned char *, unsigned long, int *, int *, int *, int *);
  int (*decompress)(void *, const unsigned char *, unsigned long, unsigned char *, int, int, int, int, int);
  char *(*error)(void *);
};

// gb_turbojpeg_header is what the header of a JPEG says.
struct gb_turbojpeg_header {
  int width, height, subsampling, colors;
};

// gb_turbojpeg_open opens a library, a path or a soname. It returns 0, or 1 with the reason in
// error.
int gb_turbojpeg_open(struct gb_turbojpeg *library, const char *name, char *error, size_t error_size);

// A decoder may be used by one thread at a time. gb_turbojpeg_new returns NULL without memory.
static inline void *gb_turbojpeg_new(const struct gb_turbojpeg *library) { return library->init_decompress(); }
static inline void gb_turbojpeg_free(const struct gb_turbojpeg *library, void *decoder) { library->destroy(decoder); }

// gb_turbojpeg_read_header and gb_turbojpeg_decode return 0, or something else with the reason in
// gb_turbojpeg_error. gb_turbojpeg_decode writes RGBA, of the whole image if width and height are
// those of the header; they may also be 1/2, 1/4 or 1/8 of it, rounded up.
static inline int gb_turbojpeg_read_header(const struct gb_turbojpeg *library, void *decoder, const void *jpeg,
                                           size_t size, struct gb_turbojpeg_header *header) {
  return library->header(decoder, jpeg, size, &header->width, &header->height, &header->subsampling, &header->colors);
}
int gb_turbojpeg_decode(const struct gb_turbojpeg *library, void *decoder, const void *jpeg, size_t size, void *pixels,
                        int width, int height);
static inline const char *gb_turbojpeg_error(const struct gb_turbojpeg *library, void *decoder) {
  return library->error(decoder);
}

#endif
