#ifndef GONBATCH_PJRT_FRAME_H
#define GONBATCH_PJRT_FRAME_H

#include "abi.h"

// gb_frame_fail returns the error of a custom call, which ends the program. If another call of the
// program has failed before, it is that one's: XLA may report either.
gb_ffi_error *gb_frame_fail(const gb_ffi_call_frame *frame, int code, const char *message);

// gb_frame_metadata tells XLA which FFI version the handler supports, if it asks for that. It
// reports whether it did.
int gb_frame_metadata(const gb_ffi_call_frame *frame);

#endif
