#ifndef GONBATCH_PJRT_FRAME_H
#define GONBATCH_PJRT_FRAME_H

#include "abi.h"

// gb_frame_fail returns the error of a custom call, which ends the program. If another call of the
// program has failed before, it is that one's: XLA may report either.
gb_ffi_error *gb_frame_fail(const gb_ffi_call_frame *frame, int code, const char *message);

// gb_frame_prepares reports whether XLA calls a handler only to prepare: there is nothing to do. It
// tells XLA which FFI version the handler supports, if XLA asks for that.
int gb_frame_prepares(const gb_ffi_call_frame *frame);

// gb_count returns the number of elements of a buffer.
int64_t gb_count(const gb_ffi_buffer *b);

// The handlers of XLA's custom calls. gb_collective_call runs a collective, whose form is an
// operand: see does.go. gb_start_call and gb_finish_call are the halves of a sum over all ranks
// that runs while the program computes. gb_generator_call is for random bits.
gb_ffi_error *gb_collective_call(gb_ffi_call_frame *frame);
gb_ffi_error *gb_start_call(gb_ffi_call_frame *frame);
gb_ffi_error *gb_finish_call(gb_ffi_call_frame *frame);
gb_ffi_error *gb_generator_call(gb_ffi_call_frame *frame);

#endif
