package memory

// #include "pool.h"
import "C"

// Peak returns how many bytes of large blocks were in use at most since its last call.
func Peak() int64 { return int64(C.gb_pool_peak()) }
