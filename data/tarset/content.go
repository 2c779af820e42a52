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
	from  io.Reader
	kind  compressed.Kind
	read  int64 // Bytes, with those that were skipped.
	zeros int   // At the end of what was read.
}

func (c *content) Read(to []byte) (int, error) {
	n, err := c.from.Read(to)
	c.read += int64(n)
	zeros := n - len(bytes.TrimRight(to[:n], "\x00"))
	if zeros == n {
		zeros += c.zeros
	}
	c.zeros = zeros
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
		s.read, s.zeros = at, 0
	}
	return at, err
}

// ended reports whether tar's mark of the end, a block of zeros, was read after these bytes.
func (c *content) ended(after int64) bool {
	return c.read >= after+block && c.zeros >= block
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
		return errors.New("it is empty, so it is no tar file")
	}
	from, err := compressed.NewReader(file, f.Size)
	if err != nil {
		return err
	}
	defer from.Close()
	c := &content{from: from}
	if c.kind, err = compressed.KindOf(file); err != nil {
		return err
	}
	if plain, ok := from.(io.Seeker); ok {
		return use(c, seekable{c, plain})
	}
	return use(c, c)
}
