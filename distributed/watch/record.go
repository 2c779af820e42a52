package watch

// #include "record.h"
import "C"

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"
)

// record keeps the collectives of this rank. It is in C's memory, so that compiled programs can add
// theirs.
type record struct{ c *C.gb_record }

func newRecord() record { return record{C.gb_record_new()} }

// enter records a collective, whose number the record itself counts.
func (r record) enter(c Collective) {
	C.gb_record_enter(r.c, C.int(c.Kind), C.int(c.Type), C.int64_t(c.Count), C.int64_t(c.Detail))
}

func (r record) leave() { C.gb_record_leave(r.c) }

// read copies the record's counters and the time since its last change.
func (r record) read(s *State) {
	var entered, left C.uint64_t
	var since C.int64_t
	C.gb_record_read(r.c, &entered, &left, &since)
	s.Entered, s.Left, s.Since = uint64(entered), uint64(left), time.Duration(since)
}

// maxRecent limits the collectives in a message. If there are more, the older ones are not
// compared.
const maxRecent = 64

// recent lists the last collectives with numbers above after.
func (r record) recent(after uint64) []Collective {
	var c [maxRecent]C.gb_collective
	n := int(C.gb_record_recent(r.c, C.uint64_t(after), &c[0], maxRecent))
	list := make([]Collective, n)
	for i := range list {
		list[i] = Collective{Number: uint64(c[i].number), Kind: Kind(c[i].kind), Type: int32(c[i]._type), Count: int64(c[i].count), Detail: int64(c[i].detail)}
	}
	return list
}

// inPrograms is the watch that the compiled programs of this process report to.
var inPrograms atomic.Pointer[Watch]

// Transport wraps the C function that compiled programs call for collectives (see Transport in
// package pjrt), so that the watch sees them. The programs of a process use the watch
// of the last call.
func (w *Watch) Transport(inner unsafe.Pointer) unsafe.Pointer {
	inPrograms.Store(w)
	return unsafe.Pointer(C.gb_record_wrap(w.record.c, C.gb_watch_transport(inner)))
}

//export gonbatchWatchFailed
func gonbatchWatchFailed(text *C.char) {
	if w := inPrograms.Load(); w != nil {
		w.hold(errors.New(C.GoString(text)))
	}
}
