// Package hugepages asks the kernel for huge pages.
package hugepages

import (
	"syscall"
	"unsafe"
)

const (
	// size is that of most processors' huge pages, in bytes.
	size = 2 << 20
	// least is the size of memory for which huge pages pay, in bytes.
	least = 1 << 20
)

// Advise requests huge pages for new memory that is about to be filled. Without them, the kernel
// stops a program that reads a large file every 4 KiB to give it one more page, which takes longer
// than the reading itself.
//
// The advice extends to all huge pages that have a part of the memory. If parts stayed without it,
// each call would split the process's memory into more mappings, whose number the kernel limits.
func Advise(memory []byte) {
	if len(memory) < least {
		return
	}
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	end := (begin + uintptr(len(memory)) + size - 1) &^ (size - 1)
	begin &^= size - 1
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, begin, end-begin, syscall.MADV_HUGEPAGE) // A kernel without them refuses, and nothing is lost.
}
