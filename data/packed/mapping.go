package packed

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"gonbatch/data/files"
)

// mapping is a file in memory. It is unmapped when the garbage collector finds that it is no longer
// used.
type mapping struct {
	path  string
	bytes []byte
}

// mapFile maps a file.
func mapFile(f files.File, file *os.File) (*mapping, error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, int(f.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map it into memory: %w", err)
	}
	// Examples are read in random order: reading ahead would be in vain. It is only a hint.
	_ = unix.Madvise(memory, unix.MADV_RANDOM)
	m := &mapping{f.Path, memory}
	runtime.AddCleanup(m, func(memory []byte) { _ = unix.Munmap(memory) }, memory)
	return m, nil
}

// read calls use with a part of the file. If the part can't be read, because the disk fails or the
// file was truncated meanwhile, the kernel sends a signal, which would end the program; read
// returns an error instead.
func (m *mapping) read(begin, end int64, use func(part []byte)) (err error) {
	defer runtime.KeepAlive(m)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch value := recover().(type) {
		case nil:
		case interface {
			error
			Addr() uintptr
		}:
			err = fmt.Errorf("%s: bytes %d to %d can't be read: the disk fails, or the file has been truncated since the program opened it", m.path, begin, end)
		default:
			panic(value)
		}
	}()
	use(m.bytes[begin:end])
	return nil
}
