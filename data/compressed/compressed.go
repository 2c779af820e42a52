// Package compressed reads files that may be compressed by gzip or zstd, whatever their names. It
// decompresses them while they are read, so their content takes no memory.
//
//	content, err := compressed.NewReader(file, size)
//	defer content.Close()
package compressed

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Kind is what a file is compressed by. The zero value means that it is not compressed.
type Kind string

// The kinds that can be read.
const (
	Gzip Kind = "gzip"
	Zstd Kind = "zstd"
)

// KindOf returns what a file is compressed by, by how it begins.
func KindOf(file io.ReaderAt) (Kind, error) {
	begin := make([]byte, 4)
	n, err := file.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	switch begin = begin[:n]; {
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		return Gzip, nil
	case bytes.HasPrefix(begin, []byte("\x28\xb5\x2f\xfd")):
		return Zstd, nil
	}
	return "", nil
}

// NewReader returns the content of a file of this size. If the file is not compressed, it is an
// io.Seeker, too. Close frees the decompressor; it does not close the file.
func NewReader(file io.ReaderAt, size int64) (io.ReadCloser, error) {
	kind, err := KindOf(file)
	if err != nil {
		return nil, err
	}
	plain := io.NewSectionReader(file, 0, size)
	switch kind {
	case Gzip:
		z, err := gzip.NewReader(plain)
		if err != nil {
			return nil, Explain(err)
		}
		return z, nil
	case Zstd:
		z, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1)) // The lanes are concurrent.
		if err != nil {
			return nil, Explain(err)
		}
		return z.IOReadCloser(), nil
	}
	return uncompressed{plain}, nil
}

// uncompressed is the content of a file that is not compressed.
type uncompressed struct{ *io.SectionReader }

// Close implements io.Closer.
func (uncompressed) Close() error { return nil }

// ErrTruncated is the error of a file that ends too early.
var ErrTruncated = errors.New("the file is truncated: copy it again, or make it again")

// Explain says what an error of a decompressor, or of a reader of its content, means.
func Explain(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	return fmt.Errorf("%w: copy the file again, or make it again", err)
}
