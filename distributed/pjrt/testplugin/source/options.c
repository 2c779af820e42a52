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

// read_message reads a message. The path has two digits for the number of each field that leads to
// it.
static void read_message(options *o, reader r, int path) {
  static const char sharded[] = "xla_gpu_shard_autotuning";
  field f;
  int is_sharded = 0;
  while (next(&r, &f)) {
    int at = 100 * path + f.number;
    switch (at) {
      case 3:        // The build options.
      case 309:      // The device assignment.
      case 30903:    // The devices of a computation.
      case 7: read_message(o, f.bytes, at); break;  // A flag of XLA.
      case 304: o->replicas = (int64_t)f.value; break;
      case 30901: o->assigned_replicas = (int64_t)f.value; break;
      case 30902: o->assigned_computations = (int64_t)f.value; break;
      case 3090301: read_ids(o, f.bytes); break;
      case 4: o->portable = (int64_t)f.value; break;
      case 701: is_sharded = f.bytes.end - f.bytes.at == (long)strlen(sharded) && memcmp(f.bytes.at, sharded, strlen(sharded)) == 0; break;
      case 702:
        if (is_sharded) read_message(o, f.bytes, at);
        break;
      case 70202: o->sharded_autotuning = f.value != 0; break;
    }
  }
  o->malformed |= r.bad;
}

options read_options(const char *data, size_t size) {
  options o = {.sharded_autotuning = 1};
  read_message(&o, (reader){.at = (const unsigned char *)data, .end = (const unsigned char *)data + size}, 0);
  return o;
}
