// Package hugepages asks the kernel for huge pages.
package hugepages

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Advise asks for huge pages for new memory that is about to be filled. Without them, the kernel
// stops a program that reads a large file every 4 KiB to give it one more page, which takes longer
// than the reading itself.
func Advise(memory []byte) {
	page := os.Getpagesize()
	if len(memory) < 8*page {
		return
	}
	before := -int(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) & (page - 1)
	_ = unix.Madvise(memory[before:before+(len(memory)-before)&^(page-1)], unix.MADV_HUGEPAGE) // A kernel without them refuses, and nothing is lost.
}
