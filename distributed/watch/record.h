#ifndef GONBATCH_WATCH_RECORD_H
#define GONBATCH_WATCH_RECORD_H

#include <stddef.h>
#include <stdint.h>

// gb_collective is a collective that this rank has entered. `number` counts from 1. `kind` and
// `type` are the caller's.
typedef struct {
  uint64_t number;
  int32_t kind, type;
  int64_t count, detail;
} gb_collective;

typedef struct gb_record gb_record;

gb_record *gb_record_new(void);

// gb_record_enter records that this rank enters a collective, gb_record_leave that it has left it.
// Both may be called from any thread.
void gb_record_enter(gb_record *r, int kind, int type, int64_t count, int64_t detail);
void gb_record_leave(gb_record *r);

// gb_record_read returns how many collectives were entered and left, and the nanoseconds since the
// last of these events.
void gb_record_read(gb_record *r, uint64_t *entered, uint64_t *left, int64_t *since);

// gb_record_recent copies the last collectives with numbers above `after`, at most `max`, oldest
// first. It returns how many it copied.
int gb_record_recent(gb_record *r, uint64_t after, gb_collective *out, int max);

// The C function that compiled programs call for their collectives. See Transport in package pjrt.
typedef int (*gb_watch_transport)(int kind, const void *in, void *out, int64_t count, int dtype,
                                  const int64_t *form, char *error, size_t error_size);

// gb_record_wrap returns a transport that records the calls of `inner` in r. A process has only
// one.
gb_watch_transport gb_record_wrap(gb_record *r, gb_watch_transport inner);

#endif
