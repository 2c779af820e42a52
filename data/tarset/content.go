package tarset

import (
	"bytes"
	"errors"
	"io"

	"gonbatch/data/compressed"
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
	if f.Size == 0 {
		return errEmpty
	}
	from, err := compressed.NewReader(file, f.Size)
	if err != nil {
		return err
	}
	defer from.Close()
	c := &content{from: from}
	if plain, ok := from.(io.Seeker); ok {
		return use(c, seekable{c, plain})
	}
	return use(c, c)
}

var errEmpty = errors.New("it is empty, so it is no tar file")
