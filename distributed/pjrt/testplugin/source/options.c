// Reads compile options from their binary form.
#include "options.h"

#include <string.h>

typedef struct {
  const unsigned char *at, *end;
  int bad;
} reader;

static uint64_t varint(reader *r) {
  uint64_t value = 0;
  for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
    unsigned char byte = *r->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  r->bad = 1;
  return 0;
}

// A field of a message: its number, and its value or its bytes.
typedef struct {
  int number;
  uint64_t value;
  reader bytes;
} field;

static int next(reader *r, field *f) {
  if (r->at >= r->end || r->bad) return 0;
  uint64_t tag = varint(r);
  *f = (field){.number = (int)(tag >> 3)};
  switch (tag & 7) {
    case 0:
      f->value = varint(r);
      return !r->bad;
    case 1:
      r->at += 8;
      return 1;
    case 5:
      r->at += 4;
      return 1;
    case 2: {
      uint64_t size = varint(r);
      if (r->bad || size > (uint64_t)(r->end - r->at)) {
        r->bad = 1;
        return 0;
      }
      f->bytes = (reader){.at = r->at, .end = r->at + size};
      r->at += size;
      return 1;
    }
  }
  r->bad = 1;
  return 0;
}

static void read_ids(options *o, reader r) {
  while (r.at < r.end && !r.bad && o->num_ids < MAX_REPLICAS) o->ids[o->num_ids++] = (int64_t)varint(&r);
  o->malformed |= r.bad;
}

static void read_assignment(options *o, reader r) {
  field f, inner;
  while (next(&r, &f)) {
    if (f.number == 1) o->assigned_replicas = (int64_t)f.value;
    if (f.number == 2) o->assigned_computations = (int64_t)f.value;
    if (f.number == 3)
      while (next(&f.bytes, &inner))
        if (inner.number == 1) read_ids(o, inner.bytes);
  }
  o->malformed |= r.bad;
}

static void read_build(options *o, reader r) {
  field f;
  while (next(&r, &f)) {
    if (f.number == 4) o->replicas = (int64_t)f.value;
    if (f.number == 9) read_assignment(o, f.bytes);
  }
  o->malformed |= r.bad;
}

// read_override reads a flag of XLA and its value.
static void read_override(options *o, reader r) {
  static const char sharded[] = "xla_gpu_shard_autotuning";
  field f, inner;
  int is_sharded = 0;
  while (next(&r, &f)) {
    if (f.number == 1)
      is_sharded = f.bytes.end - f.bytes.at == (long)strlen(sharded) && memcmp(f.bytes.at, sharded, strlen(sharded)) == 0;
    if (f.number == 2 && is_sharded)
      while (next(&f.bytes, &inner))
        if (inner.number == 2) o->sharded_autotuning = inner.value != 0;
  }
  o->malformed |= r.bad;
}

options read_options(const char *data, size_t size) {
  options o = {.sharded_autotuning = 1};
  reader r = {.at = (const unsigned char *)data, .end = (const unsigned char *)data + size};
  field f;
  while (next(&r, &f)) {
    if (f.number == 3) read_build(&o, f.bytes);
    if (f.number == 4) o.portable = (int64_t)f.value;
    if (f.number == 7) read_override(&o, f.bytes);
  }
  o.malformed |= r.bad;
  return o;
}
