package tarset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"gonbatch/data/files"
)

// content is what is in a shard: a tar file, decompressed while it is read.
type content struct {
	from io.Reader
	read int64  // Bytes, with those that were skipped.
	tail []byte // The newest ones, up to a block.
}

func (c *content) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	c.read += int64(n)
	c.tail = append(c.tail, to[max(0, n-block):n]...)
	c.tail = append(c.tail[:0], c.tail[max(0, len(c.tail)-block):]...)
	return n, err
}

// seekable is content that can be skipped.
type seekable struct {
	*content
	file io.Seeker
}

// Seek implements io.Seeker.
func (s seekable) Seek(offset int64, whence int) (at int64, err error) {
	at, err = s.file.Seek(offset, whence)
	if at != s.read {
		s.read, s.tail = at, s.tail[:0]
	}
	return at, err
}

// ended reports whether tar's mark of the end is the newest that was read, after these bytes.
func (c *content) ended(after int64) bool {
	return c.read >= after+block && c.read%block == 0 && len(c.tail) == block && len(bytes.Trim(c.tail, "\x00")) == 0
}

// withContent opens a shard and closes it. The reader reads the content, and can seek if it is not
// compressed.
func withContent(f files.File, use func(*content, io.Reader) error) error {
	file, err := f.Open()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	kind, err := compression(file)
	if err != nil {
		return err
	}
	switch plain := io.NewSectionReader(file, 0, f.Size); kind {
	case "gzip":
		z, err := gzip.NewReader(plain)
		if err != nil {
			return explained(err)
		}
		c := &content{from: z}
		return use(c, c)
	case "zstd":
		z, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1)) // The lanes are concurrent.
		if err != nil {
			return explained(err)
		}
		defer z.Close()
		c := &content{from: z}
		return use(c, c)
	default:
		c := &content{from: plain}
		return use(c, seekable{c, plain})
	}
}

// compression returns what a file is compressed by, by how it begins: gzip, zstd or "".
func compression(file *os.File) (string, error) {
	begin := make([]byte, 4)
	n, err := file.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	switch begin = begin[:n]; {
	case n == 0:
		return "", errors.New("it is empty, so it is no tar file")
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		return "gzip", nil
	case bytes.HasPrefix(begin, []byte("\x28\xb5\x2f\xfd")):
		return "zstd", nil
	}
	return "", nil
}

// explained says what an error of a decompressor, or of package tar, means.
func explained(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errTruncated
	}
	return fmt.Errorf("%w: copy the file again, or make it again", err)
}

var errTruncated = errors.New("the file is truncated: copy it again, or make it again")
