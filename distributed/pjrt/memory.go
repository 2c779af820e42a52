package pjrt

// #include "clients.h"
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// lastClient is the client that has compiled last.
var lastClient atomic.Pointer[byte]

// Memory returns how many bytes of its device's memory this process has had in use at most, and how
// many it may have. ok is false if the plugin does not say, as that for CPUs.
func Memory() (peak, limit int64, ok bool) {
	client := unsafe.Pointer(lastClient.Load())
	if client == nil {
		return 0, 0, false
	}
	var cPeak, cLimit C.int64_t
	ok = C.gb_client_memory(client, &cPeak, &cLimit) != 0
	return int64(cPeak), int64(cLimit), ok
}
