package nbformat

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is the content of a notebook's file at one moment. It is read only once, because an editor
// may save the notebook at any time.
type File struct {
	// Path is the file's path.
	Path string
	// SHA256 is the hash of the whole file.
	SHA256 string
	// text is the file's content, without the outputs of its cells.
	text []byte
	// own is set if DropOrigin has changed text.
	own bool
}

// Read reads the notebook in the file at path, without the outputs of its cells: nothing here needs
// them, and they may be big. Parse keeps them.
func Read(path string) (*Notebook, error) {
	file, err := Load(path)
	if err != nil {
		return nil, err
	}
	return file.Parse()
}

// Load reads the notebook file at path, and refuses a file that is not a notebook.
func Load(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("notebook %s: no such file", path)
	case err != nil:
		return nil, fmt.Errorf("notebook %s: %w", path, err)
	case info.IsDir():
		return nil, fmt.Errorf("notebook %s: is a directory; give the .ipynb file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("notebook %s: is a pipe or a device; give a regular file", path)
	case filepath.Ext(path) == ".go":
		return nil, fmt.Errorf("notebook %s: is a Go file; if it is a notebook of Jupytext's, convert it: jupytext --to ipynb %s", path, filepath.Base(path))
	}
	f, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("notebook %s: %w", path, err)
	}
	if _, err := f.Parse(); err != nil {
		return nil, exactError(path, info.Size(), err)
	}
	return f, nil
}

// load reads a file, without outputs.
func load(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	digest := sha256.New()
	text, err := stripOutputs(io.TeeReader(file, digest))
	return &File{Path: path, SHA256: hex.EncodeToString(digest.Sum(nil)), text: text}, err
}

// Parse returns the notebook in the file, without outputs. Each call returns a new one, which the
// caller may change.
func (f *File) Parse() (*Notebook, error) { return Parse(f.Path, f.text) }

// Text returns the file's content, without the outputs of the cells.
func (f *File) Text() []byte { return f.text }

// DropOrigin makes the file's notebook one of its own: a run's notebook.ipynb that is submitted
// again, and may have been edited, has its own cells.
func (f *File) DropOrigin() error {
	nb, err := f.Parse()
	if err != nil || nb.Origin == nil {
		return err
	}
	if err := nb.DropOrigin(); err != nil {
		return err
	}
	f.text, err = nb.Marshal()
	f.own = true
	return err
}

// Changed reports whether Text says something else than the file did.
func (f *File) Changed() bool { return f.own }

// maxExact is the maximum size of a file that is read again, as a whole, to locate a mistake in it.
const maxExact = 64 << 20

// exactError locates a mistake exactly: its column must include the part that was left out, and a
// mistake in the outputs counts too.
func exactError(path string, size int64, err error) error {
	if size > maxExact {
		return err
	}
	data, readErr := os.ReadFile(path)
	if readErr != nil {
		return fmt.Errorf("notebook %s: %w", path, readErr)
	}
	if _, exact := Parse(path, data); exact != nil {
		return exact
	}
	return err
}
