package forecast

import "sync/atomic"

// ForGPU reports whether this process computes a forecast: its graphs are compiled for a GPU,
// although its backend is a CPU.
var ForGPU atomic.Bool
