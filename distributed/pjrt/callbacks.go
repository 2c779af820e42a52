package pjrt

/*
#include <stdlib.h>
#include "clients.h"
*/
import "C"

import (
	"errors"
	"math"
	"time"
	"unsafe"

	"gonbatch/distributed/keyvalue"
)

// XLA calls these functions from its own threads, several at once.

//export gonbatchKeyValueGet
func gonbatchKeyValueGet(args *C.gb_pjrt_key_value_get_args) *C.gb_pjrt_error {
	limit := time.Duration(args.timeout_in_ms) * time.Millisecond
	if limit < 0 { // An infinite time limit overflows the int.
		limit = math.MaxInt64
	}
	value, err := theProcesses.Load().Store.Get(text(args.key, args.key_size), limit)
	if err != nil {
		return callbackError(args.callback_error, err)
	}
	args.value, args.value_size = copyOf(value), C.size_t(len(value))
	return nil
}

//export gonbatchKeyValueTryGet
func gonbatchKeyValueTryGet(args *C.gb_pjrt_key_value_try_get_args) *C.gb_pjrt_error {
	value, err := theProcesses.Load().Store.TryGet(text(args.key, args.key_size))
	if err != nil {
		return callbackError(args.callback_error, err)
	}
	args.value, args.value_size = copyOf(value), C.size_t(len(value))
	return nil
}

//export gonbatchKeyValuePut
func gonbatchKeyValuePut(args *C.gb_pjrt_key_value_put_args) *C.gb_pjrt_error {
	value := bytesOf(args.value, args.value_size)
	if err := theProcesses.Load().Store.Put(text(args.key, args.key_size), value); err != nil {
		return callbackError(args.callback_error, err)
	}
	return nil
}

func text(data *C.char, size C.size_t) string { return string(bytesOf(data, size)) }

// copyOf copies the value to memory from C's malloc. It never returns nil.
func copyOf(value []byte) *C.char {
	memory := C.malloc(C.size_t(max(len(value), 1)))
	copy(unsafe.Slice((*byte)(memory), len(value)), value)
	return (*C.char)(memory)
}

// codes are the PJRT codes of errors. XLA's reaction depends on them.
var codes = []struct {
	err  error
	code C.int
}{
	{keyvalue.ErrExists, C.GB_PJRT_ALREADY_EXISTS},
	{keyvalue.ErrNotFound, C.GB_PJRT_NOT_FOUND},
	{keyvalue.ErrTimeout, C.GB_PJRT_DEADLINE_EXCEEDED},
	{keyvalue.ErrClosed, C.GB_PJRT_CANCELLED},
	{keyvalue.ErrUnreachable, C.GB_PJRT_UNAVAILABLE},
}

func codeOf(err error) C.int {
	for _, known := range codes {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return C.GB_PJRT_INVALID_ARGUMENT
}

// callbackError creates an error for XLA, with the function that XLA passed to the callback.
func callbackError(make *C.gb_pjrt_callback_error, err error) *C.gb_pjrt_error {
	message := err.Error()
	cMessage := C.CString(message)
	defer C.free(unsafe.Pointer(cMessage))
	return C.gb_callback_failed(make, codeOf(err), cMessage, C.size_t(len(message)))
}
