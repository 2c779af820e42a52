package folder

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	bufferSize = 1 << 20
	// flushEvery is how many bytes are written before the kernel is asked to start flushing them to
	// disk: the disk works while the rest is hashed, and little is left for the sync at the end.
	flushEvery = 16 << 20
)

// writeFile creates a file, and syncs it.
func writeFile(path string, write func(io.Writer) error) (_ File, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return File{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hashed := &hashedFile{file: f, hash: sha256.New()}
	b := bufio.NewWriterSize(hashed, bufferSize)
	if err := write(b); err != nil {
		return File{}, err
	}
	if err := b.Flush(); err != nil {
		return File{}, err
	}
	if err := f.Sync(); err != nil {
		return File{}, err
	}
	return File{Name: filepath.Base(path), Size: hashed.size, SHA256: fmt.Sprintf("%x", hashed.hash.Sum(nil))}, nil
}

// hashedFile hashes the data that it writes, on another core if there is one.
type hashedFile struct {
	file          *os.File
	hash          hash.Hash
	size, flushed int64
}

func (h *hashedFile) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 { // In pieces that fit into the processor's cache.
		piece := data[:min(len(data), bufferSize)]
		var hashing sync.WaitGroup
		hashing.Go(func() { h.hash.Write(piece) })
		n, err := h.file.Write(piece)
		hashing.Wait()
		written += n
		h.size += int64(n)
		if err != nil {
			return written, err
		}
		data = data[n:]
		h.flush()
	}
	return written, nil
}

func (h *hashedFile) flush() {
	if h.size-h.flushed < flushEvery {
		return
	}
	// Only a hint: the sync at the end guarantees the result, and reports errors.
	_ = unix.SyncFileRange(int(h.file.Fd()), h.flushed, h.size-h.flushed, unix.SYNC_FILE_RANGE_WRITE)
	h.flushed = h.size
}

// syncFolder makes the names in a folder durable. Some network file systems can't, and need not.
func syncFolder(path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
