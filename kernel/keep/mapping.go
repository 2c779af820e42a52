package keep

import (
	"encoding/binary"
	"io"
	"os"
	"reflect"
	"syscall"
	"unsafe"
)

// Large slices of numbers aren't read: their memory is a private mapping of their file. The kernel
// reads the pages that the program uses, and copies those that it changes. Kept files are only ever
// replaced, so a mapping keeps the bytes with which it began.

// large is the size in bytes from which slices are mapped. Each mapping counts towards the kernel's
// limit for a process (65530 by default).
var large uint64 = 16 << 20

// mapping is the memory of a slice that was mapped. It stays until the process ends.
type mapping struct {
	// first and end are the addresses of its bytes; first is at offset in the file.
	first, end uintptr
	offset     int64
	file       os.FileInfo
}

// mapSlice maps a slice of type t with length elements, whose bytes begin at f's current offset,
// and seeks past them. It returns false if that isn't possible; then the slice must be read.
func mapSlice(f *os.File, t reflect.Type, length int) (reflect.Value, bool) {
	size := int64(length) * int64(t.Elem().Size())
	info, err := f.Stat()
	if err != nil {
		return reflect.Value{}, false
	}
	offset, err := f.Seek(0, io.SeekCurrent)
	if err != nil || offset%int64(t.Elem().Align()) != 0 || offset+size > info.Size() {
		return reflect.Value{}, false
	}
	before := offset % int64(os.Getpagesize())
	pages, err := syscall.Mmap(int(f.Fd()), offset-before, int(before+size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
	if err != nil {
		return reflect.Value{}, false
	}
	if _, err := f.Seek(size, io.SeekCurrent); err != nil {
		_ = syscall.Munmap(pages) // It was not used.
		return reflect.Value{}, false
	}
	memory := pages[before:]
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	program.mappings = append(program.mappings, mapping{first, first + uintptr(size), offset, info})
	array := reflect.NewAt(reflect.ArrayOf(length, t.Elem()), unsafe.Pointer(unsafe.SliceData(memory)))
	return array.Elem().Slice(0, length).Convert(t), true
}

// isUntouched reports whether memory is mapped from a place in a file, and was not written to
// since. If that isn't known, it returns false.
func isUntouched(memory []byte, file os.FileInfo, offset int64) bool {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	for _, m := range program.mappings {
		if m.first <= first && first+uintptr(len(memory)) <= m.end && len(memory) > 0 {
			return m.offset+int64(first-m.first) == offset && os.SameFile(m.file, file) && !isCopied(first, len(memory))
		}
	}
	return false
}

// The bits of an entry in /proc/self/pagemap (Linux' Documentation/admin-guide/mm/pagemap.rst).
const (
	pageOfFile = 1 << 61 // the page is a file's, or shared; a copy for this process is not
	pageSwap   = 1 << 62
	pageThere  = 1 << 63
)

// isCopied reports whether a page of mapped memory may be the process's own copy, which the kernel
// makes at the first write.
func isCopied(first uintptr, size int) bool {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return true
	}
	defer f.Close() //nolint:errcheck // it was only read
	page := uintptr(os.Getpagesize())
	from, to := first/page, (first+uintptr(size)-1)/page+1
	entries := make([]byte, 8*(to-from))
	if _, err := f.ReadAt(entries, int64(from)*8); err != nil {
		return true
	}
	for ; len(entries) > 0; entries = entries[8:] {
		entry := binary.NativeEndian.Uint64(entries)
		if entry&pageSwap != 0 || entry&pageThere != 0 && entry&pageOfFile == 0 {
			return true
		}
	}
	return false
}
