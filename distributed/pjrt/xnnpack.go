package pjrt

import (
	"bytes"
	"math"
	"os"
	"sync"
	"syscall"
)

// useXNNPACK is XLA's option to multiply matrices on CPUs by XNNPACK. XLA then rearranges a matrix
// that is an argument of the program once, and again only if it moves in memory. But variables are
// updated in place (see shareMemory): such a program would go on with their old values.
const useXNNPACK = "xla_cpu_use_xnnpack"

// withoutXNNPACK adds to the options of a compilation that XLA doesn't use XNNPACK. A plugin that
// doesn't know that option would refuse it.
func withoutXNNPACK(options []byte) []byte {
	if !knowsXNNPACK() {
		return options
	}
	return append(bytes.Clone(options), Flag(useXNNPACK, false)...)
}

// knowsXNNPACK reports whether the loaded plugin, of which a process has only one, is that of CPUs
// and has the option.
var knowsXNNPACK = sync.OnceValue(func() bool {
	mu.Lock()
	path := loaded["cpu"]
	mu.Unlock()
	return path != "" && contains(path, useXNNPACK)
})

// contains reports whether a file, which the process has mapped anyway, contains a text.
func contains(path, text string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || info.Size() > math.MaxInt {
		return false
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return false
	}
	defer syscall.Munmap(data) //nolint:errcheck // of a mapping that exists
	return bytes.Contains(data, []byte(text))
}
