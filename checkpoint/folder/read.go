package folder

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// maxManifest limits how much is read of a file that may contain anything.
const maxManifest = 64 << 20

// ErrForeign reports a folder that another program created. It is neither removed nor replaced.
var ErrForeign = fmt.Errorf("it has no %s: another program's, or damaged", manifestName)

// Checkpoint is a checkpoint that is open for reading. It can be read to its end even if it is
// removed meanwhile.
type Checkpoint struct {
	Manifest
	// Path is the checkpoint's folder.
	Path  string
	files map[string]*os.File
}

// Open opens a checkpoint's folder. It verifies checkpoint.json and the sizes of all files; their
// content is verified when it is read.
func Open(path string) (*Checkpoint, error) {
	c := &Checkpoint{Path: path, files: map[string]*os.File{}}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Checkpoint) open() error {
	f, size, err := openRegular(filepath.Join(c.Path, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("checkpoint %s: %w", c.Path, ErrForeign)
	}
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.Path, err)
	}
	defer f.Close() //nolint:errcheck // only read
	if size > maxManifest {
		return fmt.Errorf("checkpoint %s: %s has %d bytes: it is damaged", c.Path, manifestName, size)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.Path, err)
	}
	if c.Manifest, err = decodeManifest(c.Path, text); err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.Path, err)
	}
	for _, file := range c.Files {
		f, size, err := openRegular(filepath.Join(c.Path, file.Name))
		if err != nil {
			return fmt.Errorf("checkpoint %s: %w", c.Path, err)
		}
		c.files[file.Name] = f
		if size != file.Size {
			return fmt.Errorf("checkpoint %s: %s has %d bytes, not the %d that were written", c.Path, file.Name, size, file.Size)
		}
	}
	return nil
}

// openRegular opens a file. It doesn't block on anything else, such as a pipe.
func openRegular(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Has reports whether the checkpoint has this file.
func (c *Checkpoint) Has(name string) bool { return c.files[name] != nil }

// Read lets read read a file from its beginning, and then compares the checksum of the whole file.
// The data is valid only if Read returns nil.
func (c *Checkpoint) Read(name string, read func(r io.Reader, size int64) error) error {
	f, ok := c.files[name]
	if !ok {
		return fmt.Errorf("checkpoint %s: it has no %s", c.Path, name)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.Path, err)
	}
	want := c.Files[slices.IndexFunc(c.Files, func(file File) bool { return file.Name == name })] // It is open, so it is there.
	r := &hashedReader{file: f, hash: sha256.New()}
	readErr := read(r, want.Size)
	if _, err := io.CopyBuffer(io.Discard, r, make([]byte, bufferSize)); err != nil {
		return fmt.Errorf("checkpoint %s: read %s: %w", c.Path, name, err)
	}
	if got := fmt.Sprintf("%x", r.hash.Sum(nil)); got != want.SHA256 {
		return fmt.Errorf("checkpoint %s: %s is damaged: its SHA-256 begins with %.12s, not %.12s", c.Path, name, got, want.SHA256)
	}
	if readErr != nil {
		return fmt.Errorf("checkpoint %s: %s: %w", c.Path, name, readErr)
	}
	return nil
}

// hashedReader hashes the data that it reads, in pieces that fit into the processor's cache.
type hashedReader struct {
	file *os.File
	hash hash.Hash
}

func (h *hashedReader) Read(data []byte) (int, error) {
	n, err := h.file.Read(data[:min(len(data), bufferSize)])
	h.hash.Write(data[:n])
	return n, err
}

// Close closes all files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
